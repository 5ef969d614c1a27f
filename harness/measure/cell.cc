// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/cell.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "harness/machine/clock.h"
#include "harness/measure/block.h"
#include "harness/measure/check.h"
#include "harness/measure/overlap.h"
#include "harness/measure/precision.h"
#include "harness/measure/rows.h"
#include "harness/measure/series.h"
#include "harness/measure/source.h"
#include "harness/statistics/statistics.h"

namespace tutti::harness::measure {
namespace {

constexpr std::chrono::seconds kMostOverlapTime(3);  ///< with --iterations, which are not those of the overlap
constexpr int kTriesInVain = 8;
constexpr int kRepeatsOfUnsteadyBlock = 3;
constexpr std::int64_t kMostWarmUpNs = 1'000'000'000;
constexpr std::int64_t kWarmUpShare = 8;  ///< a variant warms up for at most 1 / kWarmUpShare of its share

/// Of the blocks that count.
BlockMedians medians_of(const Variant& variant, const Series& series, const CellOptions& options) {
  return {.case_id = case_id(variant.instance()),
          .operations = series.operations,
          .of_rounds = medians_of_rounds(series, options)};
}

Status hand_over(const Variant& variant, const Series& series, const CellOptions& options) {
  if (options.on_first_call) options.on_first_call(variant.instance(), series.first_call_ns);
  if (options.on_blocks) TUTTI_RETURN_IF_ERROR(options.on_blocks(medians_of(variant, series, options)));
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
Status add_block(Runner& runner, Variant& variant, Series& series, Source& source, Span time,
                 const CellOptions& options) {
  const int round = series.rounds++;
  const int repeats = options.shares_out_iterations() ? 0 : kRepeatsOfUnsteadyBlock;
  for (int repeat = 0; repeat <= repeats; ++repeat) {
    const bool is_cold = !series.warm_up_calls;
    int samples = source.samples(series.samples_per_block);
    if (options.conditions.iterations > 0) {
      const std::int64_t missing = options.conditions.iterations - std::ssize(times_of(series, options));
      samples = static_cast<int>(std::clamp<std::int64_t>(missing, 1, samples));
    }
    TUTTI_ASSIGN_OR_RETURN(BlockResult result, run_block(runner, variant,
                                                         {.salt = source.salt + 1,
                                                          .samples = samples,
                                                          .operations = series.operations,
                                                          .conditions = options.conditions,
                                                          .chosen = is_cold ? 0 : source.below(samples),
                                                          .start = start_of(variant, options),
                                                          .warm_up_end_ns = is_cold ? time.warm_up_end_ns() : 0,
                                                          .end_ns = time.end_ns}));
    source.salt = result.last_salt;
    if (is_cold) series.first_call_ns = result.first_call_ns;
    if (is_cold) series.warm_up_calls = static_cast<std::int64_t>(result.discarded) * series.operations;
    if (series.wrong == 0) series.reason = result.reason;
    series.wrong += result.wrong;
    const bool has_time = result.last_instant_ns < time.end_ns;
    const double each = std::max(typical_time(result, options), 1e-3);
    Series::Block& block = series.blocks.emplace_back(Series::Block{.samples = std::move(result.samples),
                                                                    .trips = result.after,
                                                                    .clocks_bound_ns = result.clocks_bound_ns,
                                                                    .round = round});
    const bool is_last = !has_time || repeat == repeats;
    block.counts = result.is_steady() || is_last;
    if (!block.counts) continue;
    block.counts = !tune(series, each, !is_last);  // loops of one length only
    if (!block.counts) continue;
    set_samples_per_block(series, each, options);
    return {};
  }
  return {};
}

/// How exact and how reproducible the results are: after all that were measured, on the same data for all systems.
Result<std::vector<Precision>> measure_precisions(Runner& runner, std::vector<Variant>& variants, std::size_t systems,
                                                  const CellOptions& options) {
  std::vector<Precision> all(systems);
  if (options.conditions.checking == Checking::none || !options.has_precision) return all;
  for (std::size_t i = 0; i < systems; ++i) {
    if (!has_precision(variants[i].instance())) continue;
    TUTTI_ASSIGN_OR_RETURN(all[i], measure_precision(runner, variants[i]));
  }
  return all;
}

/// Blocks in rounds, A B and then B A, until every series is settled or the time is over; one of each in any case. In
/// the first of each, what time there is is shared out, so that a slow variant leaves some to the others.
Status add_blocks(Runner& runner, std::vector<Variant>& variants, std::vector<Series>& all, Source& source,
                  const CellOptions& options) {
  const std::size_t count = variants.size();
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), source.random);

  const std::int64_t most_ns = options.most_time.count() / (options.conditions.overlap_calls > 0 ? 2 : 1);
  TUTTI_ASSIGN_OR_RETURN(const std::int64_t end_ns, runner.agree(runner.common_now_ns() + most_ns));
  const auto are_done = [&] {
    const auto open = std::ranges::count_if(all, [&](Series& series) { return !is_done(series, options); });
    return open == 0;
  };
  for (std::size_t block = 0;; ++block) {
    const bool is_first = block < count;
    const bool is_round_over = block % (2 * count) == 0;
    if (!is_first && is_round_over && are_done()) return {};
    TUTTI_ASSIGN_OR_RETURN(const std::int64_t now_ns, runner.agree(runner.common_now_ns()));
    if (!is_first && now_ns >= end_ns) return {};
    const std::int64_t share_ns = (end_ns - now_ns) / static_cast<std::int64_t>(is_first ? count - block : 1);
    const std::size_t i = order[block % count];
    const bool has_enough = options.conditions.iterations > 0 && is_done(all[i], options);
    if (!has_enough) {
      TUTTI_RETURN_IF_ERROR(
          add_block(runner, variants[i], all[i], source, {.begin_ns = now_ns, .end_ns = now_ns + share_ns}, options));
    }
    if (block % count == count - 1) std::reverse(order.begin(), order.end());
  }
}

/// Of each of the systems, in equal shares of the time; empty where overlap is not asked for, or nothing is moved.
Result<std::vector<OverlapResult>> add_overlap(Runner& runner, std::vector<Variant>& variants,
                                               const std::vector<Series>& all, const CellOptions& options) {
  std::vector<OverlapResult> results(variants.size() - options.limits.size());
  if (options.conditions.overlap_calls == 0 || !has_data(variants.front().instance().collective)) return results;
  const std::chrono::nanoseconds most = options.conditions.iterations > 0 ? kMostOverlapTime : options.most_time;
  const auto each_ns = std::min(most, options.most_time).count() / 2 / std::ssize(results);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::vector<double> times = times_of(all[i], options);
    if (times.empty()) continue;
    TUTTI_ASSIGN_OR_RETURN(const std::int64_t end_ns, runner.agree(runner.common_now_ns() + each_ns));
    TUTTI_ASSIGN_OR_RETURN(results[i], measure_overlap(runner, variants[i],
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
Status try_again(Runner& runner, std::vector<Variant>& variants, std::vector<Series>& all, Source& source,
                 const CellOptions& options) {
  for (std::size_t i = 0; i < variants.size(); ++i) {
    for (int time = 0; time < kTriesInVain && times_of(all[i], options).empty(); ++time) {
      TUTTI_RETURN_IF_ERROR(add_block(runner, variants[i], all[i], source, {.begin_ns = 1, .end_ns = 1}, options));
    }
  }
  return {};
}

}  // namespace

Result<std::vector<Row>> measure_cell(Runner& runner, std::vector<Variant>& variants, const CellOptions& options) {
  std::vector<Series> all;
  for (const Variant& variant : variants) all.push_back(series_for(variant.instance(), options));
  Source source{.random = std::mt19937_64(options.seed), .salt = options.seed << 32U};
  TUTTI_RETURN_IF_ERROR(add_blocks(runner, variants, all, source, options));
  TUTTI_RETURN_IF_ERROR(try_again(runner, variants, all, source, options));
  for (std::size_t i = 0; i < variants.size(); ++i) {
    TUTTI_RETURN_IF_ERROR(check_afterwards(runner, variants[i], all[i], source, options.conditions.checking));
  }
  const std::size_t systems = variants.size() - options.limits.size();
  TUTTI_ASSIGN_OR_RETURN(const std::vector<Precision> precisions,
                         measure_precisions(runner, variants, systems, options));
  if (options.conditions.iterations == 0) count_one_state(all);
  TUTTI_ASSIGN_OR_RETURN(const std::vector<OverlapResult> overlaps, add_overlap(runner, variants, all, options));
  std::vector<Row> rows;
  if (runner.index() != 0) return rows;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    if (i < systems) {
      const Measured measured{
          .variant = variants[i], .series = all[i], .precision = precisions[i], .overlap = overlaps[i]};
      rows.push_back(measured_row(measured, options));
    }
    TUTTI_RETURN_IF_ERROR(hand_over(variants[i], all[i], options));
  }
  for (std::size_t i = systems; i < variants.size(); ++i) {
    set_limit(rows,
              {.series = all[i], .memory = to_string(variants[i].memory().kind()), .way = options.limits[i - systems]},
              options);
  }
  return rows;
}

Result<double> measure_floor(Runner& runner, const Start& how) {
  struct Times {
    std::array<std::int64_t, kMostSamplesPerBlock> enter{};
    std::array<std::int64_t, kMostSamplesPerBlock> leave{};
  };
  constexpr int kBlocks = 10;
  std::vector<double> floors;
  for (int block = 0; block < kBlocks; ++block) {
    Times mine;
    for (std::size_t i = 0; i < mine.enter.size(); ++i) {
      TUTTI_RETURN_IF_ERROR(start(runner, how));
      mine.enter[i] = runner.now_ns();
      mine.leave[i] = runner.now_ns();
    }
    for (std::size_t i = 0; i < mine.enter.size(); ++i) {
      mine.enter[i] = runner.clock().common(mine.enter[i]);
      mine.leave[i] = runner.clock().common(mine.leave[i]);
    }
    TUTTI_ASSIGN_OR_RETURN(const std::vector<Times> all, runner.exchange(mine));
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
