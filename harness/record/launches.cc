// SPDX-License-Identifier: Apache-2.0
#include "harness/record/launches.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/statistics/statistics.h"
#include "harness/text/counted.h"

namespace tutti::harness::record {
namespace {

constexpr std::size_t kMostSpreadsShown = 5;

bool is_usable(const Row& row) {
  const bool is_right = row.verdict == Verdict::ok || row.verdict == Verdict::unchecked;
  return is_right && row.time_median && *row.time_median > 0;
}

std::vector<double> medians_of(const std::vector<Row>& launches) {
  std::vector<double> medians;
  for (const Row& row : launches) {
    if (is_usable(row)) medians.push_back(*row.time_median);
  }
  return medians;
}

/// The one that says most: a wrong result is not outvoted by right ones, nor what was measured by what was not.
int weight(const Row& row) {
  switch (row.verdict) {
    case Verdict::skipped:
      return 0;
    case Verdict::ok:
      return 1;
    case Verdict::unchecked:
      return 2;
    case Verdict::error:
      return 3;
    case Verdict::wrong:
      return 4;
  }
  return 4;
}

/// Of those launches that have one.
std::optional<double> median_where_known(const std::vector<Row>& launches, std::optional<double> Row::*member) {
  std::vector<double> values;
  for (const Row& one : launches) {
    if (one.*member) values.push_back(*(one.*member));
  }
  return values.empty() ? std::nullopt : std::optional(median_of(std::move(values)));
}

/// "1 of 6 launches: ...", with what the first launch without a time says; `reason` where all have one.
std::string partial_text(const std::vector<Row>& launches, std::size_t timed, const std::string& reason) {
  const auto without = std::ranges::find_if_not(launches, is_usable);
  if (without == launches.end()) return reason;
  return fmt::format("{} of {}{}{}", timed, counted(launches.size(), "launch", "es"),
                     without->reason.empty() ? "" : ": ", without->reason);
}

/// What the cells of one block of a table have in common: all but the size.
std::string block_of_cell(const std::string& cell) {
  std::string block;
  for (std::size_t i = 0; i < cell.size(); ++i) {
    const bool begins_part = i > 0 && cell[i - 1] == '/';
    const std::size_t end = cell.find_first_not_of("0123456789", i);
    if (begins_part && end != i && end != std::string::npos && cell[end] == 'B') i = end;
    block += cell[i];
  }
  return block;
}

std::string percent(const std::optional<double>& part, const std::optional<double>& whole) {
  return part && whole && *whole > 0 ? fmt::format("{:.1f}", 100 * *part / *whole) : "-";
}

/// "0.53 (0.49 to 0.57)", the interval where there is one.
std::string text_of(const Summary& ratios) {
  std::string text = ratios.median ? fmt::format("{:.3f}", *ratios.median) : "-";
  if (ratios.ci_low && ratios.ci_high) text += fmt::format(" ({:.3f} to {:.3f})", *ratios.ci_low, *ratios.ci_high);
  return text;
}

bool is_twin_of(const Row& row, const Row& other) {
  return is_twin(row.backend) && instance_of(row.backend) == other.backend && row.algorithm == other.algorithm;
}

/// In how many cells a backend and its twin come out alike.
class Twins {
 public:
  void add(const Summary& ratio) {
    if (!ratio.ci_low || !ratio.ci_high) return;
    ++cells_;
    alike_ += *ratio.ci_low <= 1 && 1 <= *ratio.ci_high ? 1 : 0;
  }
  /// A line; empty without intervals.
  [[nodiscard]] std::string text() const {
    if (cells_ == 0) return "";
    return fmt::format("# a backend against itself: the interval of the ratio contains 1 in {} of {} ({:.1f} %)\n",
                       alike_, counted(cells_, "cell"), 100.0 * alike_ / cells_);
  }

 private:
  int cells_ = 0;
  int alike_ = 0;
};

}  // namespace

std::string cell_of_case(std::string_view case_id) {
  const std::size_t first = std::min(case_id.find('/'), case_id.size());
  const std::size_t second = std::min(case_id.find('/', first + 1), case_id.size());
  return std::string(case_id.substr(0, first)) + std::string(case_id.substr(second));
}

bool are_compared(const Row& row, const Row& other) {
  const bool is_reference = backend_of(other.backend) != kOwnBackend;
  return is_twin_of(other, row) || (row.backend == kOwnBackend && is_reference && !is_twin(other.backend));
}

void Launches::add(std::span<const Row> rows) {
  for (const Row& row : rows) {
    std::vector<Row>& launches = rows_[key_of(row)];
    if (launches.empty()) cases_[cell_of_case(row.case_id)][row.starter].push_back(key_of(row));
    if (std::ranges::find(starters_, row.starter) == starters_.end()) starters_.push_back(row.starter);
    launches.push_back(row);
  }
}

std::vector<Launches::Cases> Launches::cases_by_starter() const {
  std::vector<Cases> list;
  for (auto first = order_.begin(); first != order_.end();) {
    const auto is_of_block = [block = block_of_cell(*first)](const std::string& cell) {
      return block_of_cell(cell) == block;
    };
    const auto last = std::find_if_not(first, order_.end(), is_of_block);
    for (const std::string& starter : starters_) {
      for (auto cell = first; cell != last; ++cell) {
        const auto of_cell = cases_.find(*cell);
        if (of_cell == cases_.end()) continue;
        const auto cases = of_cell->second.find(starter);
        if (cases != of_cell->second.end()) list.push_back(cases->second);
      }
    }
    first = last;
  }
  return list;
}

const std::vector<Row>& Launches::launches_of(const Row& row) const { return rows_.at(key_of(row)); }

Row Launches::joined(const std::vector<Row>& launches) const {
  Row row = *std::ranges::max_element(launches, {}, weight);
  row.time_median = row.time_ci_low = row.time_ci_high = row.time_min = row.time_max = {};
  row.time_p90 = row.autocorrelation = {};
  row.time_p95 = row.time_p99 = row.algbw = row.busbw = row.line_ns = row.net_ns = row.message_rate = {};
  row.slowdown_low = row.slowdown_high = {};  // those of one launch
  row.limit_time = median_where_known(launches, &Row::limit_time);
  row.limit_fraction = median_where_known(launches, &Row::limit_fraction);
  for (const auto member :
       {&Row::invalid_share, &Row::arrival_skew, &Row::time_from_last, &Row::overlap, &Row::overlap_called,
        &Row::time_pure, &Row::time_computing, &Row::time_overlapped, &Row::time_overlapped_called, &Row::rank_time_min,
        &Row::rank_time_mean, &Row::rank_time_max, &Row::time_on_gpu, &Row::slowdown}) {
    row.*member = median_where_known(launches, member);
  }
  row.samples = 0;
  for (const Row& one : launches) {
    row.samples += one.samples;
    for (const std::string_view mark :
         {kNoisy, kNearFloor, kLimitTooLow, kLateStarts, kFewerIterations, kFromFormula, kFlatOnHosts}) {
      if (has_mark(one, mark)) add_mark(row, mark);
    }
    add_disturbances(row.disturbed, one.disturbed);
    if (one.clocks_bound) row.clocks_bound = std::max(row.clocks_bound.value_or(0), *one.clocks_bound);
  }
  const std::vector<double> medians = medians_of(launches);
  if (medians.empty()) return row;
  const Summary summary = summarise(medians);
  row.time_median = summary.median;
  row.time_ci_low = summary.ci_low;
  row.time_ci_high = summary.ci_high;
  row.time_min = summary.min;
  row.time_max = summary.max;
  if (row.verdict == Verdict::ok) row.reason.clear();  // of a launch without a time
  if (is_usable(row)) row.reason = partial_text(launches, medians.size(), row.reason);
  const auto with_rate =
      std::ranges::find_if(launches, [](const Row& one) { return one.message_rate && is_usable(one); });
  if (with_rate != launches.end() && *row.time_median > 0) {
    row.message_rate = *with_rate->message_rate * *with_rate->time_median / *row.time_median;
  }
  const auto with_bandwidth = std::ranges::find_if(launches, [](const Row& one) { return one.algbw && one.busbw; });
  if (with_bandwidth == launches.end() || *with_bandwidth->algbw <= 0) return row;
  constexpr double kBytesPerMicrosecond = 1e-3;  // 1e9 bytes/s
  row.algbw = bytes_one_way(row) / *row.time_median * kBytesPerMicrosecond;
  row.busbw = *row.algbw * *with_bandwidth->busbw / *with_bandwidth->algbw;
  return row;
}

std::vector<std::vector<Row>> Launches::cells() const {
  std::vector<std::vector<Row>> list;
  for (const Cases& cases : cases_by_starter()) {
    std::vector<Row>& rows = list.emplace_back();
    for (const Key& one : cases) rows.push_back(joined(rows_.at(one)));
  }
  return list;
}

Summary Launches::ratios(const Row& ours, const Row& theirs) const {
  std::vector<double> ratios;
  for (const Row& mine : launches_of(ours)) {
    for (const Row& other : launches_of(theirs)) {
      if (mine.launch != other.launch || !is_usable(mine) || !is_usable(other)) continue;
      if (!have_like_memory(mine, other)) continue;
      ratios.push_back(*mine.time_median / *other.time_median);
    }
  }
  return summarise(ratios);
}

std::optional<double> Launches::ratio(const Row& ours, const Row& theirs) const { return ratios(ours, theirs).median; }

double Launches::share_between(const std::vector<Row>& launches) {
  const std::vector<double> medians = medians_of(launches);
  if (medians.empty()) return 0;
  const Summary summary = summarise(medians);
  return (*summary.max - *summary.min) / 2 / *summary.median;
}

std::string Launches::spread_of_case(const std::vector<Row>& launches) const {
  std::vector<Summary> summaries;
  for (const Row& row : launches) {
    if (!is_usable(row)) continue;
    summaries.push_back({.median = row.time_median, .ci_low = row.time_ci_low, .ci_high = row.time_ci_high});
  }
  const LaunchSpread spread = spread_of(summaries);
  const std::optional<double> median = summarise(medians_of(launches)).median;
  return fmt::format("{} {} / {}", system_of(launches.front()), percent(spread.between, median),
                     percent(spread.within, median));
}

std::string Launches::spread() const {
  struct Line {
    double share;  ///< of the time, between launches
    std::string text;
  };
  std::vector<Line> lines;
  std::size_t most = 0, rows = 0;
  Twins twins;
  for (const Cases& cases : cases_by_starter()) {
    std::vector<std::string> parts;
    std::vector<std::string> comparisons;
    double share = 0;
    for (const Key& one : cases) {
      const std::vector<Row>& launches = rows_.at(one);
      most = std::max(most, launches.size());
      rows += launches.size();
      parts.push_back(spread_of_case(launches));
      share = std::max(share, share_between(launches));
      for (const Key& other : cases) {
        const Row& mine = launches.front();
        const Row& theirs = rows_.at(other).front();
        if (!are_compared(mine, theirs)) continue;
        const Summary ratio = ratios(mine, theirs);
        comparisons.push_back(fmt::format("; {} / {} {}", system_of(mine), system_of(theirs), text_of(ratio)));
        if (is_twin_of(theirs, mine)) twins.add(ratio);
      }
    }
    const std::string under = starters_.size() > 1 ? fmt::format(" ({})", cases.front().starter) : "";
    lines.push_back({.share = share,
                     .text = fmt::format("#   {}{}: {}{}\n", cell_of_case(cases.front().case_id), under,
                                         fmt::join(parts, ", "), fmt::join(comparisons, ""))});
  }
  if (lines.empty()) return "";
  const std::size_t shown = std::min(lines.size(), kMostSpreadsShown);
  const std::size_t more = lines.size() - shown;
  if (more > 0) std::ranges::stable_sort(lines, std::greater(), &Line::share);
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) text += lines[i].text;
  if (more > 0) {
    text += fmt::format("#   and {} with less between launches: --csv and --json have the rows of each launch\n", more);
  }
  const bool has_intervals = static_cast<std::int64_t>(most) >= kLeastSamplesForInterval;
  return fmt::format(
      "# {}, {} in all: time is the median of their medians, ratio that of their ratios; {}\n"
      "# spread in % of the time: between launches (half of the range of their medians) / within one (half of its "
      "interval); ratios of times{}\n{}{}",
      most == 1 ? "1 launch" : fmt::format("{} launches", most), counted(rows, "row"),
      has_intervals ? "ci is the 95 % interval over launches"
                    : fmt::format("an interval over launches needs at least {}", kLeastSamplesForInterval),
      has_intervals ? " with their 95 % interval over launches" : "", text, twins.text());
}

}  // namespace tutti::harness::record
