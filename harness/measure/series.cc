// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/series.h"

#include <algorithm>

namespace tutti::harness::measure {
namespace {

constexpr std::int64_t kMostTaken = 4 * kMostSamples;  ///< those that do not count too, all of which are kept
/// Each block's last sample and last call are verified: a system that works in one call of eight is to have no chance,
/// however soon the times have settled.
constexpr std::ptrdiff_t kLeastBlocks = 8;
// A streaming sample: long enough that neither the start nor the clock counts, short enough for some hundreds of them.
constexpr int kFirstLoop = 10;     ///< operations, before it is known how long one takes
constexpr double kBlockUs = 40e3;  ///< aimed at; slow operations have fewer samples in a block
constexpr int kLeastSamplesPerBlock = 2;
constexpr double kLoopUs = 200;

/// The state in which most of the blocks were measured is around the median of their round trips.
RoundTrips prevailing_trips(std::span<const Series> all) {
  const auto median = [&](std::optional<double> RoundTrips::*which) {
    std::vector<double> known;
    for (const Series& series : all) {
      for (const Series::Block& block : series.blocks) {
        if (block.counts && block.trips.*which) known.push_back(*(block.trips.*which));
      }
    }
    return median_if_any(std::move(known));
  };
  return {.line_ns = median(&RoundTrips::line_ns), .net_ns = median(&RoundTrips::net_ns)};
}

}  // namespace

Series series_for(const Case& one, const CellOptions& options) {
  Series series;
  series.samples_per_block = most_in_a_block(options);
  series.is_tuned = one.cadence != Cadence::streaming;
  series.operations = series.is_tuned ? 1 : kFirstLoop;
  return series;
}

int most_in_a_block(const CellOptions& options) {
  if (options.conditions.iterations == 0) return kMostSamplesPerBlock;
  const std::int64_t blocks = options.shares_out_iterations() ? options.blocks : kLeastBlocks;
  return static_cast<int>(std::clamp<std::int64_t>(options.conditions.iterations / blocks, 1, kMostSamplesPerBlock));
}

void set_samples_per_block(Series& series, double each_us, const CellOptions& options) {
  const int most = most_in_a_block(options);
  const double wanted = kBlockUs / (std::max(each_us, 1e-3) * series.operations);
  series.samples_per_block = static_cast<int>(std::clamp<double>(wanted, std::min(kLeastSamplesPerBlock, most), most));
}

bool tune(Series& series, double each_us, bool has_time) {
  if (series.is_tuned) return false;
  series.is_tuned = true;
  const int before = series.operations;
  if (has_time) series.operations = std::clamp(static_cast<int>(kLoopUs / each_us), kShortestLoop, kLongestLoop);
  return series.operations != before;
}

std::vector<double> times_of(const Series& series, const CellOptions& options) {
  return of_each(series, [&](const Sample& sample) { return time_of(sample, options.conditions.skew); });
}

OrderedSummary summary_of(const Series& series, const CellOptions& options) {
  return summarise_in_order(times_of(series, options), options.tick_us / series.operations);
}

std::vector<BlockMedian> medians_of_rounds(const Series& series, const CellOptions& options) {
  std::vector<BlockMedian> medians;
  for (const Series::Block& block : series.blocks) {
    std::vector<double> times;
    for (const Sample& sample : block.samples) {
      if (block.counts && sample.is_valid) times.push_back(time_of(sample, options.conditions.skew));
    }
    const double median_us = times.empty() ? 0 : median_of(std::move(times));
    if (median_us > 0) medians.push_back({.round = block.round, .median_us = median_us});
  }
  return medians;
}

std::int64_t taken(const Series& series) {
  std::int64_t number = 0;
  for (const Series::Block& block : series.blocks) number += std::ssize(block.samples);
  return number;
}

bool is_done(Series& series, const CellOptions& options) {
  const std::int64_t samples = std::ssize(times_of(series, options));
  if (options.conditions.iterations > 0) {
    return samples >= options.conditions.iterations ||
           taken(series) >= kTakenForOne * options.conditions.iterations + kMostSamplesPerBlock;
  }
  if (options.blocks > 0) return series.rounds >= options.blocks;
  if (std::ssize(series.blocks) < kLeastBlocks) return false;
  if (samples >= series.look) {
    series.is_settled = is_settled(summary_of(series, options));
    series.look = next_look(samples);
  }
  return series.is_settled || samples >= kMostSamples || taken(series) >= kMostTaken;
}

RoundTrips trips_of(const Series& series) { return prevailing_trips({&series, 1}); }

void count_one_state(std::vector<Series>& all) {
  const RoundTrips prevailing = prevailing_trips(all);
  if (!prevailing.line_ns && !prevailing.net_ns) return;
  const auto is_there = [&](const Series::Block& block) {
    return block.counts && is_same_state(block.trips, prevailing) &&
           std::ranges::any_of(block.samples, &Sample::is_valid);
  };
  for (Series& series : all) {
    if (std::ranges::none_of(series.blocks, is_there)) continue;
    for (Series::Block& block : series.blocks) block.counts = is_there(block);
  }
}

}  // namespace tutti::harness::measure
