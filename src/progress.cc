// SPDX-License-Identifier: Apache-2.0
#include "src/progress.h"

#include <algorithm>
#include <optional>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "harness/cases/sweep.h"
#include "harness/machine/clock.h"
#include "harness/text/streams.h"

namespace tutti::program {
namespace {

constexpr std::int64_t kBetweenLinesNs = 60'000'000'000;
constexpr std::int64_t kBetweenUpdatesNs = 100'000'000;  // of the line on a terminal

}  // namespace

std::string duration_text(std::int64_t ns) {
  const std::int64_t seconds = std::max<std::int64_t>(0, ns) / 1'000'000'000;
  return seconds < 60 ? fmt::format("{} s", seconds) : fmt::format("{} min {:02} s", seconds / 60, seconds % 60);
}

Progress::Progress(std::int64_t end_ns)
    : is_terminal_(isatty(STDERR_FILENO) != 0), start_ns_(harness::monotonic_ns()), end_ns_(end_ns) {}

void Progress::begin(const harness::Case& one, std::size_t index, std::size_t of) {
  const std::int64_t now = harness::monotonic_ns();
  const auto left_cells = static_cast<std::int64_t>(std::max<std::size_t>(1, of - std::min(of, index)));
  const std::int64_t share_ns = std::max<std::int64_t>(0, end_ns_ - now) / left_cells;
  begun_.push_back({.at_ns = now, .share_ns = share_ns});
  if (!is_terminal_ && last_ns_ != 0 && now - last_ns_ < kBetweenLinesNs) return;
  last_ns_ = now;
  print(fmt::format("[{}/{}] {} {} P={}{}", index + 1, of, to_string(one.collective), harness::format_bytes(one.bytes),
                    one.ranks, news()),
        end_ns_ == 0 ? each_ns() * left_cells : left_of_budget_ns(left_cells));
}

/// A run walks its cells in a random order, so those that are over are like those to come.
std::int64_t Progress::each_ns() const {
  const auto done = static_cast<std::int64_t>(begun_.size()) - 1;
  return done == 0 ? 0 : (begun_.back().at_ns - begun_.front().at_ns) / done;
}

/// A cell has an equal part of what is left of the budget. Some use their part up. Others settle before, and leave more
/// to those after them: so shares grow, and with them the time of cells that use theirs up.
std::int64_t Progress::left_of_budget_ns(std::int64_t cells) const {
  constexpr double kUsedUp = 0.8;  // of its share
  double settled = 0, settled_ns = 0, used_up = 0, shares = 0;
  for (std::size_t i = 0; i + 1 < begun_.size(); ++i) {
    const auto took = static_cast<double>(begun_[i + 1].at_ns - begun_[i].at_ns);
    const auto share = static_cast<double>(std::max<std::int64_t>(1, begun_[i].share_ns));
    const bool has_settled = took < kUsedUp * share;
    (has_settled ? settled : used_up) += 1;
    (has_settled ? settled_ns : shares) += has_settled ? took : took / share;
  }
  const std::int64_t budget_ns = std::max<std::int64_t>(0, end_ns_ - begun_.back().at_ns);
  if (settled + used_up == 0) return budget_ns;
  const double chance = used_up / (settled + used_up);
  const double settles_in = settled > 0 ? settled_ns / settled : 0, uses = used_up > 0 ? shares / used_up : 0;
  auto budget = static_cast<double>(budget_ns);
  double left = 0;
  for (; cells > 0; --cells) {
    const double share = std::max(0.0, budget) / static_cast<double>(cells);
    const double takes = chance * uses * share + (1 - chance) * settles_in;
    left += takes;
    budget -= takes;
  }
  return static_cast<std::int64_t>(left);
}

void Progress::add(std::span<const harness::Row> rows) {
  for (const harness::Row& row : rows) {
    wrong_ += row.verdict == harness::Verdict::wrong ? 1 : 0;
    failed_ += row.verdict == harness::Verdict::error ? 1 : 0;
    noisy_ += row.marks.find("noisy") != std::string::npos ? 1 : 0;
  }
}

std::string Progress::news() const {
  std::string text;
  for (const auto& [count, word] :
       {std::pair{wrong_, "wrong"}, std::pair{failed_, "failed"}, std::pair{noisy_, "noisy"}}) {
    if (count > 0) text += fmt::format(", {} {}", count, word);
  }
  return text;
}

void Progress::show(std::string_view text, double done) {
  const std::int64_t now = harness::monotonic_ns();
  if (now - std::max(last_ns_, start_ns_) < (is_terminal_ ? kBetweenUpdatesNs : kBetweenLinesNs)) return;
  last_ns_ = now;
  const double left = done > 0 ? static_cast<double>(now - start_ns_) * (1 - done) / done : 0;
  constexpr double kMostTold = 1e18;  // ns: a century is no estimate
  print(text, left < kMostTold ? static_cast<std::int64_t>(left) : 0);
}

void Progress::print(std::string_view text, std::int64_t left_ns) {
  const std::string estimate = left_ns > 0 ? fmt::format(", about {} left", duration_text(left_ns)) : "";
  std::string line = fmt::format("{}{}", text, estimate);
  // A line that a terminal wraps is not overwritten as a whole; one as wide as the terminal may be wrapped too.
  const auto columns = is_terminal_ ? harness::columns_of(STDERR_FILENO) : std::nullopt;
  if (columns) line.resize(std::min(line.size(), *columns - 1));
  harness::to_stderr(fmt::format("{}{}{}", is_terminal_ ? "\r\033[K" : "", line, is_terminal_ ? "" : "\n"));
  is_shown_ = is_terminal_;
}

void Progress::clear() {
  if (!is_shown_) return;
  harness::to_stderr("\r\033[K");
  is_shown_ = false;
}

}  // namespace tutti::program
