// SPDX-License-Identifier: Apache-2.0
#include "harness/report/table.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/report/unusual.h"
#include "impl/types/status.h"

namespace tutti::harness {
namespace {

constexpr std::string_view kMissing = "-";

/// Four significant digits, and never more than three decimals: what the eye compares down a column.
std::string number(const std::optional<double>& value) {
  if (!value || !std::isfinite(*value)) return std::string(kMissing);
  if (*value < 9.9995) return fmt::format("{:.3f}", *value);
  if (*value < 99.995) return fmt::format("{:.2f}", *value);
  return *value < 999.95 ? fmt::format("{:.1f}", *value) : fmt::format("{:.0f}", *value);
}

std::string interval(const Row& row) {
  if (!row.time_median || !row.time_ci_low || !row.time_ci_high || *row.time_median <= 0) return std::string(kMissing);
  const double half = std::max(*row.time_ci_high - *row.time_median, *row.time_median - *row.time_ci_low);
  const double percent = 100 * half / *row.time_median;
  if (percent >= 9999.5) return ">9999";
  return percent < 99.95 ? fmt::format("{:.1f}", percent) : fmt::format("{:.0f}", percent);
}

bool is_own(const Row& row) { return row.backend == kOwnBackend; }

/// The other system's row, where `rows` has exactly one of a reference: what the own rows are compared with.
const Row* reference_of(std::span<const Row> rows) {
  const auto is_reference = [](const Row& row) { return !is_own(row); };
  if (std::ranges::count_if(rows, is_reference) != 1) return nullptr;
  return &*std::ranges::find_if(rows, is_reference);
}

std::string ratio_text(const std::optional<double>& value) {
  return value ? fmt::format("{:.2f}", *value) : std::string(kMissing);
}

bool is_side_by_side(std::span<const Row> rows) { return rows.size() == 2 && rows[0].backend != rows[1].backend; }

constexpr char kNoisySign = '~';        // after the interval
constexpr char kNearFloorSign = '\'';   // after the time
constexpr char kLimitTooLowSign = '!';  // after the share of the limit

/// Autocorrelation from which on the interval may cover less than it says (see harness/measure/README.md).
constexpr double kAlike = 0.5;

/// time ci algbw busbw verdict; where there is room, limit before the verdict.
constexpr std::size_t kMeasuresWidth = 9 + 6 + 8 + 8 + 10;
constexpr std::size_t kLimitWidth = 6;
std::string measures(const Row& row, bool has_limit) {
  const std::string limit = fmt::format("{:>{}}{}", ratio_text(row.limit_fraction), kLimitWidth,
                                        has_mark(row, kLimitTooLow) ? kLimitTooLowSign : ' ');
  return fmt::format(" {:>8}{}{:>5}{}{:>7} {:>7}{}{:>9}", number(row.time_median),
                     has_mark(row, kNearFloor) ? kNearFloorSign : ' ', interval(row),
                     has_mark(row, kNoisy) ? kNoisySign : ' ', number(row.algbw), number(row.busbw),
                     has_limit ? limit : " ", to_string(row.verdict));
}
std::string measures_names(bool has_limit) {
  return fmt::format(" {:>8} {:>5} {:>7} {:>7}{} {:>9}", "time", "ci", "algbw", "busbw", has_limit ? " limit" : "",
                     "verdict");
}
std::string measures_units(bool has_limit) {
  return fmt::format(" {:>8} {:>5} {:>7} {:>7}{:>{}}", "(us)", "(%)", "(GB/s)", "(GB/s)", "",
                     10 + (has_limit ? kLimitWidth : 0));
}

/// Wide enough for `dissemination`; a longer one moves its line. A reference has no algorithm to show.
constexpr std::size_t kAlgorithmWidth = 14;
std::string algorithm_cell(const Row& row, std::string_view text) {
  return is_own(row) ? fmt::format(" {:>{}}", text, kAlgorithmWidth - 1) : std::string();
}

/// The work of a block, in words.
std::string title_of(const Row& row) {
  std::string title = row.collective;
  if (row.dtype != kNone) title += " " + row.dtype;
  if (row.op != kNone) title += " " + row.op;
  if (row.root) title += fmt::format(", root {}", *row.root);
  title += fmt::format(", P={} {} over {}", row.ranks, row.ranks_as, row.transport);
  if (row.placement != kNone) title += fmt::format(", {} place", row.placement == "in" ? "in" : "out of");
  if (row.buffers != kNone) title += fmt::format(", {} buffers", row.buffers);
  if (!row.counts.empty() && row.counts != kNone) title += fmt::format(", {} counts", row.counts);
  return title + ", " + row.cadence;
}

/// How exact the results are, and where they are the same; empty where that is not known.
std::string accuracy_line(const Row& row) {
  if (!row.error_ulp || !row.error_ulp_mean) return {};
  std::string line = fmt::format("#   {}: error {:.3g} ulp at most, {:.3g} on average", system_of(row), *row.error_ulp,
                                 *row.error_ulp_mean);
  if (!row.same_on_ranks.empty()) line += fmt::format("; same bits on all ranks: {}", row.same_on_ranks);
  return line + fmt::format("; on all repeats: {}\n", row.same_on_repeats);
}

std::string overlap_line(const Row& row) {
  if (!row.overlap || !row.overlap_called || !row.overlap_calls) return {};
  return fmt::format("#   {}: overlap with computing {:.0f} %, with {} calls meanwhile {:.0f} %\n", system_of(row),
                     *row.overlap, *row.overlap_calls, *row.overlap_called);
}

std::string without_trailing_spaces(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string banner(std::string_view name, std::size_t width) {
  return fmt::format("  {:-^{}}", fmt::format(" {} ", name), width - 2);
}

/// What the times of a cell mean other than usual, a line; empty: nothing.
std::string conditions_line(const Row& row) {
  std::vector<std::string> words;
  for (const Unusual& one : unusual_conditions(row)) words.push_back(one.words);
  return words.empty() ? "" : fmt::format("# measured with {}\n", fmt::join(words, ", "));
}

/// The cells whose samples resemble each other most.
std::string alike_line(std::vector<std::pair<double, std::string>> alike) {
  constexpr std::size_t kMostNamed = 3;
  if (alike.empty()) return {};
  std::ranges::sort(alike, std::greater());
  std::vector<std::string> named;
  for (std::size_t i = 0; i < std::min(alike.size(), kMostNamed); ++i) {
    named.push_back(fmt::format("{} {:.2f}", alike[i].second, alike[i].first));
  }
  return fmt::format(
      "# autocorrelated: {} rows whose neighbouring samples resemble each other by {} or more; most: {}\n",
      alike.size(), kAlike, fmt::join(named, ", "));
}

std::string heading_side_by_side(std::span<const Row> rows) {
  std::string systems = fmt::format("#{:>22}", "");
  std::string names = fmt::format("#{:>10} {:>11}", "size", "count");
  std::string units = fmt::format("#{:>10} {:>11}", "(B)", "(elements)");
  for (const Row& row : rows) {
    systems += banner(row.backend, kMeasuresWidth + (is_own(row) ? kAlgorithmWidth + kLimitWidth : 0));
    names += algorithm_cell(row, "algorithm") + measures_names(is_own(row));
    units += algorithm_cell(row, "") + measures_units(is_own(row));
  }
  names += fmt::format("{:>7}", reference_of(rows) != nullptr ? "ratio" : "");
  return without_trailing_spaces(systems) + without_trailing_spaces(names) + without_trailing_spaces(units);
}

std::string heading_stacked() {
  const std::string names = fmt::format("#{:>10} {:>11}  {:<10}{:>{}}{}{:>7}", "size", "count", "backend", "algorithm",
                                        kAlgorithmWidth, measures_names(true), "ratio");
  const std::string units =
      fmt::format("#{:>10} {:>11}  {:<10}{:>{}}{}", "(B)", "(elements)", "", "", kAlgorithmWidth, measures_units(true));
  return names + "\n" + without_trailing_spaces(units);
}

std::string heading_of(std::span<const Row> rows, const std::string& conditions) {
  const std::string title = fmt::format("# {}\n{}", title_of(rows[0]), conditions);
  return title + (is_side_by_side(rows) ? heading_side_by_side(rows) : heading_stacked());
}

std::string lines_stacked(std::span<const Row> rows, const RatioOf& ratio) {
  const Row* reference = reference_of(rows);
  std::string lines;
  for (const Row& row : rows) {
    const bool is_compared = reference != nullptr && is_own(row);
    lines += without_trailing_spaces(
        fmt::format(" {:>10} {:>11}  {:<10}{:>{}}{}{:>7}", row.bytes, row.count, row.backend,
                    row.algorithm == kNone ? kMissing : std::string_view(row.algorithm), kAlgorithmWidth,
                    measures(row, true), is_compared ? ratio_text(ratio(row, *reference)) : ""));
  }
  return lines;
}

}  // namespace

std::optional<double> ratio_within_a_launch(const Row& ours, const Row& theirs) {
  const auto counts = [](const Row& row) {
    const bool is_usable = row.verdict == Verdict::ok || row.verdict == Verdict::unchecked;
    return is_usable && row.time_median && *row.time_median > 0;
  };
  if (!counts(ours) || !counts(theirs) || ours.launch != theirs.launch) return {};
  return *ours.time_median / *theirs.time_median;
}

std::string Table::line_side_by_side(std::span<const Row> rows) const {
  std::string line = fmt::format(" {:>10} {:>11}", rows[0].bytes, rows[0].count);
  for (const Row& row : rows) line += algorithm_cell(row, row.algorithm) + measures(row, is_own(row));
  if (const Row* reference = reference_of(rows)) {
    const Row& ours = reference == &rows[0] ? rows[1] : rows[0];
    line += fmt::format("{:>7}", ratio_text(ratio_(ours, *reference)));
  }
  return without_trailing_spaces(line);
}

std::string Table::reasons(std::span<const Row> rows) {
  std::string lines;
  for (const Row& row : rows) {
    if (row.reason.empty()) continue;
    const std::string line = fmt::format("#   {} {}: {}\n", system_of(row), to_string(row.verdict), row.reason);
    if (told_.insert(line).second) lines += line;
  }
  return lines;
}

void Table::count(std::span<const Row> rows) {
  ++cells_;
  const Row* reference = reference_of(rows);
  for (const Row& row : rows) {
    ++verdicts_[row.verdict];
    noisy_ += has_mark(row, kNoisy) ? 1 : 0;
    near_floor_ += has_mark(row, kNearFloor) ? 1 : 0;
    limit_too_low_ += has_mark(row, kLimitTooLow) ? 1 : 0;
    late_starts_ += has_mark(row, kLateStarts) ? 1 : 0;
    if (row.autocorrelation.value_or(0) >= kAlike) alike_.push_back({*row.autocorrelation, row.case_id});
    if (!row.disturbed.empty()) {
      ++disturbed_;
      add_disturbances(disturbances_, row.disturbed);
    }
    if (row.verdict == Verdict::skipped) {
      const std::string why = fmt::format("{}: {}", row.backend, row.reason);
      const auto same = std::ranges::find(skipped_, why, &std::pair<std::string, std::int64_t>::first);
      same != skipped_.end() ? static_cast<void>(++same->second) : skipped_.push_back({why, 1});
    }
    const bool is_empty_call = row.bytes == 0 && row.collective != to_string(Collective::barrier);
    if (reference == nullptr || !is_own(row) || is_empty_call) continue;
    const auto value = ratio_(row, *reference);
    if (!value) continue;
    Ratios& sum = ratios_[reference->backend];
    ++sum.cells;
    sum.slower += *value > 1 ? 1 : 0;
    sum.log_sum += std::log(*value);
  }
}

std::string Table::cell(std::span<const Row> rows) {
  TUTTI_ASSERT(!rows.empty(), "a cell without rows");
  std::string text;
  const auto measured = std::ranges::find_if(rows, [](const Row& row) { return row.time_median.has_value(); });
  if (measured != rows.end()) conditions_ = conditions_line(*measured);  // a cell without times has those of the run
  if (std::string heading = heading_of(rows, conditions_); heading != heading_) {
    text = (heading_.empty() ? "" : "\n") + heading;
    heading_ = std::move(heading);
    told_.clear();
  }
  text += is_side_by_side(rows) ? line_side_by_side(rows) : lines_stacked(rows, ratio_);
  for (const Row& row : rows) text += (shows_accuracy_ ? accuracy_line(row) : "") + overlap_line(row);
  text += reasons(rows);
  count(rows);
  return text;
}

std::int64_t Table::rows_with(Verdict verdict) const {
  const auto entry = verdicts_.find(verdict);
  return entry == verdicts_.end() ? 0 : entry->second;
}

std::string Table::footer(std::span<const LeftOut> left_out) const {
  std::int64_t rows = 0;
  std::string verdicts;
  for (const Verdict verdict : all_verdicts()) {
    rows += rows_with(verdict);
    verdicts += fmt::format("{}{} {}", verdicts.empty() ? "" : ", ", rows_with(verdict), to_string(verdict));
  }
  std::string text = fmt::format("\n# {} rows in {} cells: {}\n", rows, cells_, verdicts);
  for (const auto& [reference, sum] : ratios_) {
    text += fmt::format("# ratio, time of {} / time of {}: geometric mean {:.2f} over {}, of which {} above 1\n",
                        kOwnBackend, reference, std::exp(sum.log_sum / static_cast<double>(sum.cells)), sum.cells,
                        sum.slower);
  }
  if (noisy_ > 0) {
    text +=
        fmt::format("# {} after ci: noisy, {} rows whose interval did not get within 1 % (2 % below 50 us) in time\n",
                    kNoisySign, noisy_);
  }
  if (near_floor_ > 0) {
    text += fmt::format("# {} after time: near floor, {} rows below five times a sample in which nothing is done\n",
                        kNearFloorSign, near_floor_);
  }
  if (limit_too_low_ > 0) {
    text += fmt::format("# {} after limit: limit too low, {} rows faster than the limit by more than 5 %\n",
                        kLimitTooLowSign, limit_too_low_);
  }
  if (late_starts_ > 0) {
    text += fmt::format("# late starts: {} rows in which a rank came late to more than a quarter of the samples\n",
                        late_starts_);
  }
  text += alike_line(alike_);
  if (disturbed_ > 0) {
    text += fmt::format("# disturbed while they were measured: {} rows (column disturbed): {}\n", disturbed_,
                        disturbances_);
  }
  for (const auto& [reason, number_of_rows] : skipped_)
    text += fmt::format("# skipped: {} x {}\n", number_of_rows, reason);
  for (const LeftOut& item : left_out) text += fmt::format("# left out: {} x {}\n", item.cells, item.reason);
  return text;
}

}  // namespace tutti::harness
