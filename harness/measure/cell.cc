// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/cell.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <random>

#include "harness/cases/sweep.h"
#include "harness/machine/clock.h"
#include "harness/measure/block.h"
#include "harness/measure/check.h"
#include "harness/measure/overlap.h"
#include "harness/measure/precision.h"
#include "harness/measure/settling.h"
#include "harness/statistics/statistics.h"

namespace tutti::harness::measure {
namespace {

constexpr std::int64_t kMostTaken = 4 * kMostSamples;  ///< those that do not count too, all of which are kept
constexpr std::int64_t kTakenForOne = 4;               ///< the same with --iterations, for each of them
constexpr std::chrono::seconds kMostOverlapTime(3);    ///< with --iterations, which are not those of the overlap
constexpr int kTriesInVain = 8;
constexpr double kBlockUs = 40e3;  ///< aimed at; slow operations have fewer samples in a block
constexpr int kLeastSamplesPerBlock = 2;
constexpr int kRepeatsOfUnsteadyBlock = 3;
/// Each block's last sample and last call are verified. A system that works in one call of eight is to have no chance,
/// however soon the times have settled.
constexpr std::ptrdiff_t kLeastBlocks = 8;
// A streaming sample: long enough that neither the start nor the clock counts, short enough for some hundreds of them.
constexpr int kFirstLoop = 10;    ///< operations, before it is known how long one takes
constexpr int kShortestLoop = 4;  ///< fewer are no stream
constexpr int kLongestLoop = 2000;
constexpr double kLoopUs = 200;
constexpr std::int64_t kMostWarmUpNs = 1'000'000'000;
constexpr std::int64_t kWarmUpShare = 8;  ///< a variant warms up for at most 1 / kWarmUpShare of its share
constexpr double kNearFloorTimes = 5;
constexpr double kMostFraction = 1.05;  ///< of the limit; a system that is faster refutes the limit

struct Block {
  std::vector<Sample> samples;
  std::optional<double> line_ns;
  bool counts = true;  ///< false: its samples are kept and are no part of the row
};

/// All blocks of one variant.
struct Series {
  std::vector<Block> blocks;
  std::int64_t wrong = 0;
  std::string reason;
  int samples_per_block = kMostSamplesPerBlock;
  int operations = 1;                         ///< in a sample
  bool is_tuned = true;                       ///< false: the first block of a stream tells how long its loops should be
  std::optional<std::int64_t> warm_up_calls;  ///< empty: not warmed up yet
  std::int64_t look = next_look(0);           ///< the number of samples at which is_settled is decided anew
  bool is_settled = false;
};

/// Where the number of samples is given, they are of several blocks too.
int most_in_a_block(const CellOptions& options) {
  if (options.conditions.iterations == 0) return kMostSamplesPerBlock;
  return static_cast<int>(
      std::clamp<std::int64_t>(options.conditions.iterations / kLeastBlocks, 1, kMostSamplesPerBlock));
}

Series series_for(const Case& one, const CellOptions& options) {
  Series series;
  series.samples_per_block = most_in_a_block(options);
  series.is_tuned = one.cadence != Cadence::streaming;
  series.operations = series.is_tuned ? 1 : kFirstLoop;
  return series;
}

/// What `value` is of each sample that counts, in their order.
template <class Value>
auto of_each(const Series& series, Value value) {
  std::vector<std::decay_t<decltype(std::invoke(value, std::declval<const Sample&>()))>> values;
  for (const Block& block : series.blocks) {
    for (const Sample& sample : block.samples) {
      if (block.counts && sample.is_valid) values.push_back(std::invoke(value, sample));
    }
  }
  return values;
}

std::vector<double> times_of(const Series& series, const CellOptions& options) {
  return of_each(series, [&](const Sample& sample) { return time_of(sample, options.conditions.skew); });
}

OrderedSummary summary_of(const Series& series, const CellOptions& options) {
  return summarise_in_order(times_of(series, options), options.tick_us / series.operations);
}

std::int64_t taken(const Series& series) {
  std::int64_t number = 0;
  for (const Block& block : series.blocks) number += std::ssize(block.samples);
  return number;
}

/// Whether there are samples enough, or too many; decided where it is time to look.
bool is_done(Series& series, const CellOptions& options) {
  const std::int64_t samples = std::ssize(times_of(series, options));
  if (options.conditions.iterations > 0) {
    return samples >= options.conditions.iterations ||
           taken(series) >= kTakenForOne * options.conditions.iterations + kMostSamplesPerBlock;
  }
  if (std::ssize(series.blocks) < kLeastBlocks) return false;
  if (samples >= series.look) {
    series.is_settled = is_settled(summary_of(series, options));
    series.look = next_look(samples);
  }
  return series.is_settled || samples >= kMostSamples || taken(series) >= kMostTaken;
}

/// Line round trips of all blocks of all variants; the state in which most of the cell was measured is around the
/// median.
std::optional<double> prevailing_line(const std::vector<Series>& all) {
  std::vector<double> lines;
  for (const Series& series : all) {
    for (const Block& block : series.blocks) {
      if (block.counts && block.line_ns) lines.push_back(*block.line_ns);
    }
  }
  return lines.empty() ? std::nullopt : std::optional(median_of(std::move(lines)));
}

/// Only the blocks of the prevailing state count, unless a variant has no sample there: its own line_ns then says so.
void count_one_state(std::vector<Series>& all) {
  const std::optional<double> line = prevailing_line(all);
  if (!line) return;
  const auto is_there = [&](const Block& block) {
    return block.counts && is_same_state(*block.line_ns, *line) &&
           std::ranges::any_of(block.samples, &Sample::is_valid);
  };
  for (Series& series : all) {
    if (std::ranges::none_of(series.blocks, is_there)) continue;
    for (Block& block : series.blocks) block.counts = is_there(block);
  }
}

std::optional<double> line_of(const Series& series) {
  std::vector<double> lines;
  for (const Block& block : series.blocks) {
    if (block.counts && block.line_ns) lines.push_back(*block.line_ns);
  }
  return lines.empty() ? std::nullopt : std::optional(median_of(std::move(lines)));
}

/// The rank that is there most often.
std::optional<std::int64_t> most_frequent(const std::vector<int>& ranks) {
  std::map<int, int> times;
  for (const int rank : ranks) ++times[rank];
  const auto most =
      std::max_element(times.begin(), times.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == times.end() ? std::nullopt : std::optional<std::int64_t>(most->first);
}

std::optional<double> median_if_any(std::vector<double> values) {
  return values.empty() ? std::nullopt : std::optional(median_of(std::move(values)));
}

/// How the ranks came to the samples.
void set_arrivals(Row& row, const Series& series, const CellOptions& options) {
  row.arrival_skew = median_if_any(of_each(series, &Sample::skew_us));
  row.time_from_last = median_if_any(of_each(series, &Sample::last_arrival_us));
  row.last_rank = most_frequent(of_each(series, &Sample::arrived_last));
  if (options.conditions.sync != Synchronisation::roundtime) return;
  std::int64_t late = 0;
  for (const Block& block : series.blocks) late += std::ranges::count(block.samples, false, &Sample::is_valid);
  row.invalid_share = static_cast<double>(late) / static_cast<double>(taken(series));
  if (*row.invalid_share > kMostLateSamples) add_mark(row, kLateStarts);
  if (row.samples > 0) return;
  row.reason = fmt::format("no time: to each of {} samples a rank came late", taken(series));
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

Row row_for(const Variant& variant, const Series& series, const CellOptions& options) {
  Row row = row_of(variant.instance());
  const OrderedSummary summary = summary_of(series, options);
  set_times(row, summary, variant.instance().problem());
  row.autocorrelation = summary.autocorrelation;
  row.warm_up = series.warm_up_calls.value_or(0);
  if (!is_settled(summary)) add_mark(row, kNoisy);
  const double floor_us = options.floor_us_of ? options.floor_us_of(variant.instance()) : 0;
  const bool is_near = summary.median && *summary.median * series.operations < kNearFloorTimes * floor_us;
  if (is_near) add_mark(row, kNearFloor);
  row.slowest_rank = most_frequent(of_each(series, &Sample::finished_last));
  row.line_ns = line_of(series);
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
  }
  if (options.conditions.tells_ranks) set_ranks(row, series);
  mark_fewer(row, series, options);
  return row;
}

/// How near the rows came to the limit. A limit whose results were wrong does not count.
void set_limit(std::vector<Row>& rows, const Series& limit, const CellOptions& options) {
  if (limit.wrong > 0) {
    for (Row& row : rows) {
      if (row.reason.empty()) row.reason = fmt::format("no limit: its own result was wrong: {}", limit.reason);
    }
    return;
  }
  const std::optional<double> time = summary_of(limit, options).median;
  if (!time || *time <= 0) return;
  for (Row& row : rows) {
    if (!row.time_median || *row.time_median <= 0) continue;
    row.limit_time = time;
    row.limit_fraction = *time / *row.time_median;
    if (*row.limit_fraction > kMostFraction) add_mark(row, kLimitTooLow);
  }
}

Status hand_over(const Variant& variant, const Series& series, const CellOptions& options) {
  if (!options.on_samples) return {};
  std::vector<Sample> samples;
  for (std::size_t index = 0; index < series.blocks.size(); ++index) {
    for (Sample sample : series.blocks[index].samples) {
      sample.block = static_cast<int>(index);
      sample.is_of_state = series.blocks[index].counts;
      samples.push_back(std::move(sample));
    }
  }
  return options.on_samples(variant.instance(), samples);
}

/// What the blocks of a cell draw from, the same on all hosts.
struct Source {
  std::mt19937_64 random;
  std::uint64_t salt = 0;  ///< of the last refill

  /// Up to a quarter less than `most`, at least 1: a system that counts calls must not know which one is verified.
  int samples(int most) { return std::max(1, most - below((most + 3) / 4 + 1)); }
  /// At least 0.
  int below(int bound) { return static_cast<int>(random() % static_cast<std::uint64_t>(bound)); }
};

/// How long each loop of a stream should be, from the first one; whether that is another length. Without time for
/// another block it stays.
bool tune(Series& series, double each_us, bool has_time) {
  if (series.is_tuned) return false;
  series.is_tuned = true;
  const int before = series.operations;
  if (has_time) series.operations = std::clamp(static_cast<int>(kLoopUs / each_us), kShortestLoop, kLongestLoop);
  return series.operations != before;
}

struct Span {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;

  [[nodiscard]] std::int64_t warm_up_end_ns() const {
    return begin_ns + std::min((end_ns - begin_ns) / kWarmUpShare, kMostWarmUpNs);
  }
};

Start start_of(const Variant& variant, const CellOptions& options) {
  Variant* const barrier = options.barrier_of ? options.barrier_of(variant.instance()) : nullptr;
  return {.how = options.conditions.sync, .barrier = barrier};
}

/// Of all samples of a block, the late ones too: how long its next one should be.
double typical_time(const BlockResult& result, const CellOptions& options) {
  std::vector<double> times;
  for (const Sample& sample : result.samples) times.push_back(time_of(sample, options.conditions.skew));
  return median_of(std::move(times));
}

/// Runs one block of a variant, again where the machine changed its state meanwhile.
Status add_block(Host& host, Variant& variant, Series& series, Source& source, Span time, const CellOptions& options) {
  for (int repeat = 0; repeat <= kRepeatsOfUnsteadyBlock; ++repeat) {
    const bool is_cold = !series.warm_up_calls;
    int samples = source.samples(series.samples_per_block);
    if (options.conditions.iterations > 0) {
      const std::int64_t missing = options.conditions.iterations - std::ssize(times_of(series, options));
      samples = static_cast<int>(std::clamp<std::int64_t>(missing, 1, samples));
    }
    TUTTI_ASSIGN_OR_RETURN(BlockResult result, run_block(host, variant,
                                                         {.salt = source.salt + 1,
                                                          .samples = samples,
                                                          .operations = series.operations,
                                                          .conditions = options.conditions,
                                                          .chosen = is_cold ? 0 : source.below(samples),
                                                          .start = start_of(variant, options),
                                                          .warm_up_end_ns = is_cold ? time.warm_up_end_ns() : 0,
                                                          .end_ns = time.end_ns}));
    source.salt = result.last_salt;
    if (is_cold) series.warm_up_calls = static_cast<std::int64_t>(result.discarded) * series.operations;
    if (series.wrong == 0) series.reason = result.reason;
    series.wrong += result.wrong;
    const bool has_time = result.last_instant_ns < time.end_ns;
    const double each = std::max(typical_time(result, options), 1e-3);
    Block& block =
        series.blocks.emplace_back(Block{.samples = std::move(result.samples), .line_ns = result.line_after_ns});
    const bool is_last = !has_time || repeat == kRepeatsOfUnsteadyBlock;
    block.counts = result.is_steady() || is_last;
    if (!block.counts) continue;
    block.counts = !tune(series, each, !is_last);  // loops of one length only
    if (!block.counts) continue;
    const int most = most_in_a_block(options);
    series.samples_per_block = std::clamp(static_cast<int>(kBlockUs / (each * series.operations)),
                                          std::min(kLeastSamplesPerBlock, most), most);
    return {};
  }
  return {};
}

/// `calls` calls that are verified and are no samples, on data of consecutive salts.
Status check_afterwards(Host& host, Variant& variant, Series& series, Source& source, int calls) {
  for (int call = 0; call < calls; ++call) {
    TUTTI_ASSIGN_OR_RETURN(
        const BlockResult result,
        run_block(
            host, variant,
            {.salt = source.salt, .samples = 0, .discarded = call == 0 ? 1 : 0, .operations = series.operations}));
    source.salt = result.last_salt;
    if (series.wrong == 0) series.reason = result.reason;
    series.wrong += result.wrong;
  }
  return {};
}

/// Calls that are verified after all that were measured. With `last` there are some, because its blocks have no call on
/// other data. There are some also where one call does not have every rank in every element: then as many as it takes,
/// whatever the time. Each block's own check stands for itself.
int calls_afterwards(const Variant& variant, Checking checking) {
  const int passes = passes_of(variant);
  if (checking == Checking::last) return passes;
  return checking == Checking::none || passes == 1 ? 0 : passes;
}

/// How exact and how reproducible the results are: after all that were measured, on the same data for all systems.
Result<std::vector<Precision>> measure_precisions(Host& host, std::vector<Variant>& variants, std::size_t systems,
                                                  const CellOptions& options) {
  std::vector<Precision> all(systems);
  if (options.conditions.checking == Checking::none || !options.has_precision) return all;
  for (std::size_t i = 0; i < systems; ++i) {
    if (!has_precision(variants[i].instance())) continue;
    TUTTI_ASSIGN_OR_RETURN(all[i], measure_precision(host, variants[i]));
  }
  return all;
}

/// Blocks in rounds, A B and then B A, until every series is settled or the time is over; one of each in any case. In
/// the first of each, what time there is is shared out, so that a slow variant leaves some to the others.
Status add_blocks(Host& host, std::vector<Variant>& variants, std::vector<Series>& all, Source& source,
                  const CellOptions& options) {
  const std::size_t count = variants.size();
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), source.random);

  const std::int64_t most_ns = options.most_time.count() / (options.conditions.overlap_calls > 0 ? 2 : 1);
  TUTTI_ASSIGN_OR_RETURN(const std::int64_t end_ns, host.agree(monotonic_ns() + most_ns));
  const auto are_done = [&] {
    const auto open = std::ranges::count_if(all, [&](Series& series) { return !is_done(series, options); });
    return open == 0;
  };
  for (std::size_t block = 0;; ++block) {
    const bool is_first = block < count;
    const bool is_round_over = block % (2 * count) == 0;
    if (!is_first && is_round_over && are_done()) return {};
    TUTTI_ASSIGN_OR_RETURN(const std::int64_t now_ns, host.agree(monotonic_ns()));
    if (!is_first && now_ns >= end_ns) return {};
    const std::int64_t share_ns = (end_ns - now_ns) / static_cast<std::int64_t>(is_first ? count - block : 1);
    const std::size_t i = order[block % count];
    const bool has_enough = options.conditions.iterations > 0 && is_done(all[i], options);
    if (!has_enough) {
      TUTTI_RETURN_IF_ERROR(
          add_block(host, variants[i], all[i], source, {.begin_ns = now_ns, .end_ns = now_ns + share_ns}, options));
    }
    if (block % count == count - 1) std::reverse(order.begin(), order.end());
  }
}

/// What overlap adds to a row.
void set_overlap(Row& row, const OverlapResult& result) {
  if (result.wrong > 0) {
    row.reason = row.wrong.value_or(0) > 0 ? row.reason : "overlapped: " + result.reason;
    row.wrong = row.wrong.value_or(0) + result.wrong;
    row.verdict = Verdict::wrong;
  }
  if (result.pure_us.empty()) return;
  row.time_pure = median_of(result.pure_us);
  row.time_computing = median_of(result.computing_us);
  row.time_overlapped = median_of(result.overlapped_us);
  row.time_overlapped_called = median_of(result.called_us);
  if (*row.time_pure <= 0 || *row.time_computing <= 0) return;
  row.overlap = overlap_percent(*row.time_pure, *row.time_computing, *row.time_overlapped);
  row.overlap_called = overlap_percent(*row.time_pure, *row.time_computing, *row.time_overlapped_called);
}

/// Of each of the systems, in equal shares of the time; empty where overlap is not asked for, or nothing is moved.
Result<std::vector<OverlapResult>> add_overlap(Host& host, std::vector<Variant>& variants,
                                               const std::vector<Series>& all, const CellOptions& options) {
  std::vector<OverlapResult> results(variants.size() - (options.has_limit ? 1 : 0));
  if (options.conditions.overlap_calls == 0 || !has_data(variants.front().instance().collective)) return results;
  const std::chrono::nanoseconds most = options.conditions.iterations > 0 ? kMostOverlapTime : options.most_time;
  const auto each_ns = std::min(most, options.most_time).count() / 2 / std::ssize(results);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::vector<double> times = times_of(all[i], options);
    if (times.empty()) continue;
    TUTTI_ASSIGN_OR_RETURN(const std::int64_t end_ns, host.agree(monotonic_ns() + each_ns));
    TUTTI_ASSIGN_OR_RETURN(results[i], measure_overlap(host, variants[i],
                                                       {.calls = options.conditions.overlap_calls,
                                                        .pure_us = median_of(times),
                                                        .salt = (options.seed << 32U) + (std::uint64_t{1} << 30U),
                                                        .end_ns = end_ns,
                                                        .conditions = options.conditions,
                                                        .start = start_of(variants[i], options)}));
  }
  return results;
}

/// Where the time was over before a variant had a sample that counts: the least block, up to kTriesInVain times.
Status try_again(Host& host, std::vector<Variant>& variants, std::vector<Series>& all, Source& source,
                 const CellOptions& options) {
  for (std::size_t i = 0; i < variants.size(); ++i) {
    for (int time = 0; time < kTriesInVain && times_of(all[i], options).empty(); ++time) {
      TUTTI_RETURN_IF_ERROR(add_block(host, variants[i], all[i], source, {.begin_ns = 1, .end_ns = 1}, options));
    }
  }
  return {};
}

}  // namespace

Result<std::vector<Row>> measure_cell(Host& host, std::vector<Variant>& variants, const CellOptions& options) {
  std::vector<Series> all;
  for (const Variant& variant : variants) all.push_back(series_for(variant.instance(), options));
  Source source{.random = std::mt19937_64(options.seed), .salt = options.seed << 32U};
  TUTTI_RETURN_IF_ERROR(add_blocks(host, variants, all, source, options));
  TUTTI_RETURN_IF_ERROR(try_again(host, variants, all, source, options));
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const int calls = calls_afterwards(variants[i], options.conditions.checking);
    TUTTI_RETURN_IF_ERROR(check_afterwards(host, variants[i], all[i], source, calls));
  }
  const std::size_t systems = variants.size() - (options.has_limit ? 1 : 0);
  TUTTI_ASSIGN_OR_RETURN(const std::vector<Precision> precisions, measure_precisions(host, variants, systems, options));
  if (options.conditions.iterations == 0) count_one_state(all);
  TUTTI_ASSIGN_OR_RETURN(const std::vector<OverlapResult> overlaps, add_overlap(host, variants, all, options));
  std::vector<Row> rows;
  if (host.index() != 0) return rows;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    if (i < systems) {
      rows.push_back(row_for(variants[i], all[i], options));
      set_precision(rows.back(), precisions[i]);
      set_overlap(rows.back(), overlaps[i]);
    }
    TUTTI_RETURN_IF_ERROR(hand_over(variants[i], all[i], options));
  }
  if (options.has_limit) set_limit(rows, all.back(), options);
  return rows;
}

Result<double> measure_floor(Host& host, const Start& how) {
  struct Times {
    std::array<std::int64_t, kMostSamplesPerBlock> enter{};
    std::array<std::int64_t, kMostSamplesPerBlock> leave{};
  };
  constexpr int kBlocks = 10;
  std::vector<double> floors;
  for (int block = 0; block < kBlocks; ++block) {
    Times mine;
    for (std::size_t i = 0; i < mine.enter.size(); ++i) {
      TUTTI_RETURN_IF_ERROR(start(host, how));
      mine.enter[i] = monotonic_ns();
      mine.leave[i] = monotonic_ns();
    }
    TUTTI_ASSIGN_OR_RETURN(const std::vector<Times> all, host.exchange(mine));
    for (std::size_t i = 0; i < mine.enter.size(); ++i) {
      std::int64_t first = all.front().enter[i], last = all.front().leave[i];
      for (const Times& times : all) {
        first = std::min(first, times.enter[i]);
        last = std::max(last, times.leave[i]);
      }
      floors.push_back(static_cast<double>(last - first));
    }
  }
  return median_of(std::move(floors));
}

}  // namespace tutti::harness::measure
