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
    : is_terminal_(isatty(STDERR_FILENO) != 0),
      start_ns_(harness::monotonic_ns()),
      stage_ns_(start_ns_),
      end_ns_(end_ns) {}

void Progress::begin(const harness::Case& one, std::size_t index, std::size_t of) {
  const std::int64_t now = harness::monotonic_ns();
  const auto left_cells = static_cast<std::int64_t>(std::max<std::size_t>(1, of - std::min(of, index)));
  begun_ns_.push_back(now);
  if (!is_terminal_ && last_ns_ != 0 && now - last_ns_ < kBetweenLinesNs) return;
  last_ns_ = now;
  print(fmt::format("[{}/{}] {} {} P={}{}", index + 1, of, to_string(one.collective), harness::format_bytes(one.bytes),
                    one.ranks, news()),
        end_ns_ == 0 ? each_ns() * left_cells : left_of_budget_ns(left_cells));
}

/// Launches walk their cells in a random order, so those that are over are like those to come.
std::int64_t Progress::each_ns() const {
  const auto done = static_cast<std::int64_t>(begun_ns_.size()) - 1;
  return done == 0 ? 0 : (begun_ns_.back() - begun_ns_.front()) / done;
}

/// By the cells that are over. A budget is shared out anew before each cell, so what is left of it draws those to come
/// out, or cuts them short. A budget that is much longer than the run says nothing.
std::int64_t Progress::left_of_budget_ns(std::int64_t cells) const {
  const std::int64_t budget_ns = std::max<std::int64_t>(0, end_ns_ - begun_ns_.back());
  const std::int64_t by_cells = each_ns() * cells;
  return by_cells == 0 ? budget_ns : std::clamp(budget_ns, by_cells * 3 / 4, by_cells * 4 / 3);
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

void Progress::begin_stage() { stage_ns_ = harness::monotonic_ns(); }

void Progress::show(std::string_view text, double done) {
  if (harness::is_stderr_behind()) return;  // it would be old when it is read
  const std::int64_t now = harness::monotonic_ns();
  if (now - std::max(last_ns_, start_ns_) < (is_terminal_ ? kBetweenUpdatesNs : kBetweenLinesNs)) return;
  last_ns_ = now;
  const double left = done > 0 ? static_cast<double>(now - stage_ns_) * (1 - done) / done : 0;
  constexpr double kMostTold = 1e18;  // ns: a century is no estimate
  print(text, left < kMostTold ? static_cast<std::int64_t>(left) : 0);
}

void Progress::print(std::string_view text, std::int64_t left_ns) {
  const std::string estimate = left_ns > 0 ? fmt::format(", about {} left", duration_text(left_ns)) : "";
  std::string line = fmt::format("{}{}", text, estimate);
  // A line that a terminal wraps is not overwritten as a whole; one as wide as the terminal may be wrapped too.
  const auto columns = is_terminal_ ? harness::columns_of(STDERR_FILENO) : std::nullopt;
  if (columns) line.resize(std::min(line.size(), *columns - 1));
  if (is_terminal_) harness::erase_line_of_stderr();
  harness::to_stderr(is_terminal_ ? line : line + "\n");
  is_shown_ = is_terminal_;
}

void Progress::clear() {
  if (!is_shown_) return;
  harness::erase_line_of_stderr();
  is_shown_ = false;
}

}  // namespace tutti::program
