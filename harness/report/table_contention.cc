// SPDX-License-Identifier: Apache-2.0
// The table of contentions: a line for each group of a system, with its time alone, together, and their ratio.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "harness/report/table.h"
#include "harness/report/table_text.h"

namespace tutti::harness::report {
namespace {

/// The two rows of a group of a system; null: there is none.
struct Pair {
  const Row* alone = nullptr;
  const Row* together = nullptr;

  [[nodiscard]] const Row& any() const { return alone != nullptr ? *alone : *together; }
};

std::vector<Pair> pairs_of(std::span<const Row> rows) {
  std::vector<Pair> pairs;
  for (const Row& row : rows) {
    auto same = std::ranges::find_if(pairs, [&](const Pair& pair) {
      const Row& other = pair.any();
      return other.backend == row.backend && other.algorithm == row.algorithm && other.group == row.group &&
             other.bytes == row.bytes && other.collective == row.collective;
    });
    if (same == pairs.end()) same = pairs.insert(same, Pair());
    (row.contention == kAlone ? same->alone : same->together) = &row;
  }
  return pairs;
}

/// The graver of both.
Verdict verdict_of(const Pair& pair) {
  if (pair.alone == nullptr || pair.together == nullptr) return pair.any().verdict;
  if (pair.together->verdict != Verdict::ok) return pair.together->verdict;
  return pair.alone->verdict;
}

std::string group_text(const Row& row) {
  return row.deal.empty() ? fmt::to_string(row.group.value_or(0))
                          : fmt::format("{} {}", row.group.value_or(0), row.collective);
}

std::string slowdown_text(const Row* row) {
  if (row == nullptr || !row->slowdown) return std::string(kMissing);
  std::string text = ratio_text(row->slowdown);
  if (row->slowdown_low && row->slowdown_high) {
    text += fmt::format(" ({} to {})", ratio_text(row->slowdown_low), ratio_text(row->slowdown_high));
  }
  return text;
}

struct Widths {
  std::size_t backend = 10;
  std::size_t algorithm = 9;
  std::size_t group = 5;
  bool has_intervals = true;
};

struct Fields {
  std::string size, backend, algorithm, group, alone, alone_ci, together, together_ci, slowdown, verdict;
};

std::string line_of(const Fields& fields, const Widths& widths) {
  const auto ci = [&](const std::string& text) { return widths.has_intervals ? fmt::format(" {:>5}", text) : ""; };
  return without_trailing_spaces(
      fmt::format("{:>10}  {:<{}}  {:<{}}  {:<{}} {:>8}{} {:>8}{}  {:<22} {:>9}", fields.size, fields.backend,
                  widths.backend, fields.algorithm, widths.algorithm, fields.group, widths.group, fields.alone,
                  ci(fields.alone_ci), fields.together, ci(fields.together_ci), fields.slowdown, fields.verdict));
}

std::string heading_of(const Widths& widths) {
  return "#" +
         line_of(
             {"size", "backend", "algorithm", "group", "alone", "ci", "together", "ci", "slowdown (95 %)", "verdict"},
             widths)
             .substr(1) +
         "#" + line_of({"(B)", "", "", "", "(us)", "(%)", "(us)", "(%)", "", ""}, widths).substr(1);
}

Fields fields_of(const Pair& pair) {
  const auto time = [](const Row* row) { return row == nullptr ? std::string(kMissing) : number(row->time_median); };
  const auto ci = [](const Row* row) { return row == nullptr ? std::string(kMissing) : interval(*row); };
  const Row& row = pair.any();
  return {.size = fmt::to_string(row.bytes),
          .backend = row.backend,
          .algorithm = row.algorithm == kNone ? std::string(kMissing) : row.algorithm,
          .group = group_text(row),
          .alone = time(pair.alone),
          .alone_ci = ci(pair.alone),
          .together = time(pair.together),
          .together_ci = ci(pair.together),
          .slowdown = slowdown_text(pair.together),
          .verdict = std::string(to_string(verdict_of(pair)))};
}

}  // namespace

std::string Table::contention(std::span<const Row> rows) {
  const std::vector<Pair> pairs = pairs_of(rows);
  Widths widths{.backend = std::max<std::size_t>(10, layout_.longest_backend),
                .algorithm = std::max<std::size_t>(9, layout_.longest_algorithm)};
  for (const Row& row : rows) widths.group = std::max(widths.group, group_text(row).size());
  widths.has_intervals = !layout_.width || heading_of(widths).find('\n') <= *layout_.width;
  const auto measured = std::ranges::find_if(rows, [](const Row& row) { return row.time_median.has_value(); });
  if (measured != rows.end()) conditions_ = conditions_line(*measured);
  const Row& first = rows[0];
  const std::string deal = first.deal.empty() ? "" : fmt::format(" that run {}", first.deal);
  const std::string starter =
      layout_.names_starter && !first.starter.empty() ? fmt::format(", started by {}", first.starter) : "";
  std::string heading =
      fitted(fmt::format("# {}, groups {}{}{}\n{}", title_of(first), first.groups, deal, starter, conditions_)) +
      heading_of(widths);
  std::string text;
  if (heading != heading_) {
    text = (heading_.empty() ? "" : "\n") + heading;
    heading_ = std::move(heading);
    told_.clear();
  }
  for (const Pair& pair : pairs) text += line_of(fields_of(pair), widths);
  text += fitted(reasons(rows));
  count(rows);
  return text;
}

}  // namespace tutti::harness::report
