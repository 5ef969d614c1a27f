// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/rows.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "harness/cases/sweep.h"
#include "harness/measure/block.h"
#include "harness/measure/check.h"
#include "harness/measure/settling.h"
#include "harness/statistics/statistics.h"
#include "harness/text/counted.h"

namespace tutti::harness::measure {
namespace {

constexpr double kNearFloorTimes = 5;
constexpr double kMostFraction = 1.05;  ///< of the limit; a system that is faster refutes the limit

/// The rank that is there most often.
std::optional<std::int64_t> most_frequent(const std::vector<int>& ranks) {
  std::map<int, int> times;
  for (const int rank : ranks) ++times[rank];
  const auto most =
      std::max_element(times.begin(), times.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == times.end() ? std::nullopt : std::optional<std::int64_t>(most->first);
}

/// ", most often rank 1 on node2"
std::string late_rank(const Row& row, const CellOptions& options) {
  if (!row.last_rank) return {};
  const std::string host = options.host_of ? options.host_of(static_cast<int>(*row.last_rank)) : std::string();
  return fmt::format(", most often rank {}{}", *row.last_rank, host.empty() ? "" : " on " + host);
}

/// How the ranks came to the samples.
void set_arrivals(Row& row, const Series& series, const CellOptions& options) {
  row.arrival_skew = median_if_any(of_each(series, &Sample::skew_us));
  row.time_from_last = median_if_any(of_each(series, &Sample::last_arrival_us));
  row.last_rank = most_frequent(of_each(series, &Sample::arrived_last));
  if (!row.slowest_rank) row.slowest_rank = most_frequent(of_all(series, &Sample::finished_last));
  if (!row.last_rank) row.last_rank = most_frequent(of_all(series, &Sample::arrived_last));
  if (options.conditions.sync != Synchronisation::roundtime) return;
  std::int64_t late = 0;
  for (const Series::Block& block : series.blocks) late += std::ranges::count(block.samples, false, &Sample::is_valid);
  row.invalid_share = static_cast<double>(late) / static_cast<double>(taken(series));
  if (*row.invalid_share > kMostLateSamples) {
    add_mark(row, kLateStarts);
    row.last_rank = most_frequent(of_all(series, &Sample::arrived_last));  // the late samples tell which rank it was
  }
  if (row.samples > 0) return;
  row.reason = fmt::format("no time: to each of {} a rank came late{}", counted(taken(series), "sample"),
                           late_rank(row, options));
}

/// What the ranks of a sample took: the fastest, all in the mean, and the slowest.
void set_ranks(Row& row, const Series& series) {
  const auto each_rank = of_each(series, &Sample::rank_us);
  std::vector<double> least, mean, most;
  for (const std::vector<double>& ranks : each_rank) {
    least.push_back(std::ranges::min(ranks));
    mean.push_back(std::accumulate(ranks.begin(), ranks.end(), 0.0) / static_cast<double>(ranks.size()));
    most.push_back(std::ranges::max(ranks));
  }
  row.rank_time_min = median_if_any(std::move(least));
  row.rank_time_mean = median_if_any(std::move(mean));
  row.rank_time_max = median_if_any(std::move(most));
}

/// What the ranks' GPUs say of the samples.
void set_stream_time(Row& row, const Series& series) {
  std::vector<double> times;
  for (const std::optional<double>& one : of_each(series, &Sample::stream_us)) {
    if (one) times.push_back(*one);
  }
  row.time_on_gpu = median_if_any(std::move(times));
}

/// That a row has fewer samples than were asked for.
void mark_fewer(Row& row, const Series& series, const CellOptions& options) {
  if (row.samples >= options.conditions.iterations) return;
  add_mark(row, kFewerIterations);
  if (!row.reason.empty()) return;
  const bool is_late = taken(series) >= kTakenForOne * options.conditions.iterations;
  row.reason = fmt::format("{} of {} iterations: {}", row.samples, options.conditions.iterations,
                           is_late ? "to the others a rank came late" : "there was no time for more");
}

/// What was verified, and how often where that was chosen.
std::string checked_on(const Variant& variant, Checking checking) {
  const std::string often = checking == Checking::sample ? "" : fmt::format("{} ", to_string(checking));
  return often + (checks_further(variant.instance()) ? "further" : "timed") + inputs_text(variant);
}

/// Who compared its results.
void set_verifier(Row& row, const Variant& variant) {
  const bool is_compared = has_data(variant.instance().collective);  // a barrier is judged by the host's clocks
  row.verified_by = is_compared ? variant.memory().verified_by() : host_memory().verified_by();
}

/// What is known before anything is measured: with where its buffers lie.
Row begun_row(const Variant& variant) {
  Row row = row_of(variant.instance());
  row.memory = to_string(variant.memory().kind());
  return row;
}

Row row_of_series(const Variant& variant, const Series& series, const CellOptions& options) {
  Row row = begun_row(variant);
  const OrderedSummary summary = summary_of(series, options);
  set_times(row, summary, variant.instance().problem());
  row.autocorrelation = summary.autocorrelation;
  row.warm_up = series.warm_up_calls.value_or(0);
  if (!is_settled(summary)) add_mark(row, kNoisy);
  const double floor_us = options.floor_us_of ? options.floor_us_of(variant.instance()) : 0;
  const bool is_near = summary.median && *summary.median * series.operations < kNearFloorTimes * floor_us;
  if (is_near) add_mark(row, kNearFloor);
  row.slowest_rank = most_frequent(of_each(series, &Sample::finished_last));
  const RoundTrips trips = trips_of(series);
  row.line_ns = trips.line_ns;
  row.net_ns = trips.net_ns;
  std::int64_t bound_ns = 0;
  for (const Series::Block& block : series.blocks) bound_ns = std::max(bound_ns, block.clocks_bound_ns);
  if (bound_ns > 0) row.clocks_bound = static_cast<double>(bound_ns) * 1e-3;
  row.operations = series.operations;
  set_conditions(row, variant.instance().collective, options.conditions);
  if (options.conditions.cache == CacheState::rotate) row.buffer_sets = variant.sets();
  if (options.conditions.checking != Checking::none) row.wrong = series.wrong;
  row.verdict = series.wrong == 0 ? Verdict::ok : Verdict::wrong;
  set_arrivals(row, series, options);
  if (series.wrong > 0) row.reason = series.reason;
  if (options.conditions.checking == Checking::none) {
    row.verdict = Verdict::unchecked;
    row.reason = "--check none";
  } else {
    row.checked_on = checked_on(variant, options.conditions.checking);
    set_verifier(row, variant);
  }
  if (options.conditions.tells_ranks) set_ranks(row, series);
  set_stream_time(row, series);
  mark_fewer(row, series, options);
  return row;
}

/// What was found to be wrong after all that the row knows so far, which explains more where it was wrong too.
void add_wrong(Row& row, std::int64_t wrong, const std::string& reason) {
  if (wrong == 0) return;
  if (row.verdict != Verdict::wrong) row.reason = reason;
  row.verdict = Verdict::wrong;
  row.wrong = row.wrong.value_or(0) + wrong;
}

/// What overlap adds to a row.
void set_overlap(Row& row, const OverlapResult& result) {
  add_wrong(row, result.wrong, "overlapped: " + result.reason);
  if (result.pure_us.empty()) return;
  row.time_pure = median_of(result.pure_us);
  row.time_computing = median_of(result.computing_us);
  row.time_overlapped = median_of(result.overlapped_us);
  row.time_overlapped_called = median_of(result.called_us);
  if (*row.time_pure <= 0 || *row.time_computing <= 0) return;
  row.overlap = overlap_percent(*row.time_pure, *row.time_computing, *row.time_overlapped);
  row.overlap_called = overlap_percent(*row.time_pure, *row.time_computing, *row.time_overlapped_called);
}

/// The verdict of a row that has none yet.
void set_verdict(Row& row, std::int64_t wrong, const std::string& reason, const std::string& checked_on) {
  row.verdict = wrong == 0 ? Verdict::ok : Verdict::wrong;
  row.wrong = wrong;
  row.reason = reason;
  row.checked_on = checked_on;
}

}  // namespace

Row measured_row(const Measured& measured, const CellOptions& options) {
  Row row = row_of_series(measured.variant, measured.series, options);
  set_precision(row, measured.precision);
  set_overlap(row, measured.overlap);
  return row;
}

void set_limit(std::vector<Row>& rows, const MeasuredLimit& limit, const CellOptions& options) {
  const bool is_wrong = limit.series.wrong > 0;
  const std::optional<double> time = summary_of(limit.series, options).median;
  for (Row& row : rows) {
    if (row.memory != limit.memory) continue;
    if (is_wrong && row.reason.empty()) {
      row.reason = fmt::format("no limit: its own result was wrong: {}", limit.series.reason);
    }
    if (is_wrong || !time || *time <= 0 || !row.time_median || *row.time_median <= 0) continue;
    row.limit_way = limit.way;
    row.limit_time = time;
    row.limit_fraction = *time / *row.time_median;
    if (*row.limit_fraction > kMostFraction) add_mark(row, kLimitTooLow);
  }
}

void set_disturbed(std::vector<Row>& rows, const std::string& words) {
  for (Row& row : rows) row.disturbed = words;
}

Row streamed_row(const Variant& variant, const StreamResult& result, const StreamOptions& options) {
  const Case& one = variant.instance();
  Row row = begun_row(variant);
  set_times(row, summarise(result.each_us), one.problem());
  if (options.launches > 0) row.graph = "yes";
  if (options.grouped > 1) row.grouped = options.grouped;
  if (options.checks == 0) return row;
  set_verifier(row, variant);
  set_verdict(row, result.wrong, result.reason, (one.is_in_place ? "further" : "timed") + inputs_text(variant));
  return row;
}

void set_precision(Row& row, const Precision& precision) {
  if (!precision.accuracy) return;
  const auto text = [](bool is_same) { return is_same ? "yes" : "no"; };
  if (precision.accuracy->elements > 0) {
    row.error_ulp = precision.accuracy->max_ulp;
    row.error_ulp_mean = precision.accuracy->mean_ulp();
  }
  row.same_on_repeats = text(precision.is_same_on_repeats);
  if (precision.is_same_on_ranks) row.same_on_ranks = text(*precision.is_same_on_ranks);
  add_wrong(row, precision.damage.wrong, precision.damage.text + ", on random values");
}

Row checked_row(const Variant& variant, const Damage& damage, bool has_special) {
  Row row = begun_row(variant);
  set_verifier(row, variant);
  set_verdict(row, damage.wrong, damage.text,
              "every" + inputs_text(variant) + (has_special ? "; special values too" : ""));
  return row;
}

void set_replayed(Row& row, const ReplayedPart& part, double tick_us) {
  const OrderedSummary summary = summarise_in_order(part.times_us, tick_us);
  set_times(row, summary, {});
  row.busbw = std::nullopt;  // its calls have factors of their own
  row.autocorrelation = summary.autocorrelation;
  row.warm_up = 2;
  row.memory = row.verified_by = to_string(MemoryKind::host);
  if (!is_settled(summary)) add_mark(row, kNoisy);
  set_verdict(row, part.wrong, part.reason, "timed");
}

Row refused_row(const Case& one, const Reason& refusal) {
  Row row = row_of(one);
  set_refused(row, refusal);
  return row;
}

void set_refused(Row& row, const Reason& refusal) {
  const bool is_missing = refusal.code == Code::unavailable || refusal.code == Code::resource;
  row.verdict = is_missing ? Verdict::skipped : refusal.code == Code::refuted ? Verdict::wrong : Verdict::error;
  row.reason = refusal.text();
}

std::string inputs_text(const Variant& variant) {
  const Case& one = variant.instance();
  if (variant.values() != Values::exact) return fmt::format("; {} values", to_string(variant.values()));
  if (passes_of(variant) == 1) return {};
  return fmt::format("; {} passes of {}", passes_of(variant),
                     counted(contributors_of(one.dtype, one.op, one.ranks), "rank"));
}

}  // namespace tutti::harness::measure
