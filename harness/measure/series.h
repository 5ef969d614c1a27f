// SPDX-License-Identifier: Apache-2.0
// A series is what was taken of one variant of a cell: its blocks, which of them count, and whether there are samples
// enough.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "harness/measure/block.h"
#include "harness/measure/cell.h"
#include "harness/measure/settling.h"
#include "harness/record/block_medians.h"
#include "harness/record/samples.h"
#include "harness/statistics/statistics.h"

namespace tutti::harness::measure {

/// All blocks of one variant.
struct Series {
  struct Block {
    std::vector<Sample> samples;
    RoundTrips trips;
    std::int64_t clocks_bound_ns = 0;  ///< see BlockResult
    bool counts = true;                ///< false: its samples are kept and are no part of the row
    int round = 0;                     ///< of the cell's blocks, in each of which every variant has one that counts
  };

  std::vector<Block> blocks;
  int rounds = 0;  ///< that were begun
  std::int64_t wrong = 0;
  std::string reason;
  int samples_per_block = kMostSamplesPerBlock;
  int operations = 1;                         ///< in a sample
  bool is_tuned = true;                       ///< false: the first block of a stream tells how long its loops should be
  std::optional<std::int64_t> warm_up_calls;  ///< empty: not warmed up yet
  std::int64_t first_call_ns = 0;             ///< of the first block: see BlockResult
  std::int64_t look = next_look(0);           ///< the number of samples at which is_settled is decided anew
  bool is_settled = false;
};
[[nodiscard]] Series series_for(const Case& one, const CellOptions& options);

/// Where the number of samples is given, they are of several blocks too.
[[nodiscard]] int most_in_a_block(const CellOptions& options);
/// Sets how many samples the next block has, of operations that take so long: a slow one has fewer.
void set_samples_per_block(Series& series, double each_us, const CellOptions& options);
inline constexpr int kShortestLoop = 4;  ///< of a stream: fewer operations are none
inline constexpr int kLongestLoop = 2000;
/// How long each loop of a stream should be, from the first one; whether that is another length. Without time for
/// another block it stays.
bool tune(Series& series, double each_us, bool has_time);

/// What `value` is of each sample that counts, in their order.
template <class Value>
auto of_each(const Series& series, Value value, bool counts_all = false) {
  std::vector<std::decay_t<decltype(std::invoke(value, std::declval<const Sample&>()))>> values;
  for (const Series::Block& block : series.blocks) {
    for (const Sample& sample : block.samples) {
      if (counts_all || (block.counts && sample.is_valid)) values.push_back(std::invoke(value, sample));
    }
  }
  return values;
}
/// of_each, and samples that do not count as well.
template <class Value>
auto of_all(const Series& series, Value value) {
  return of_each(series, value, true);
}
[[nodiscard]] std::vector<double> times_of(const Series& series, const CellOptions& options);
[[nodiscard]] OrderedSummary summary_of(const Series& series, const CellOptions& options);
/// The median time of each round's block that counts.
[[nodiscard]] std::vector<BlockMedian> medians_of_rounds(const Series& series, const CellOptions& options);
/// All samples, those that do not count too.
[[nodiscard]] std::int64_t taken(const Series& series);
/// With --iterations, after how many no more are taken for each of them: to the others a rank came late.
inline constexpr std::int64_t kTakenForOne = 4;
/// Whether there are samples enough, or too many; decided where it is time to look.
[[nodiscard]] bool is_done(Series& series, const CellOptions& options);

/// The median round trips of the blocks that count.
[[nodiscard]] RoundTrips trips_of(const Series& series);
/// Only the blocks of the prevailing state count, unless a variant has no sample there: its own round trips then say
/// so.
void count_one_state(std::vector<Series>& all);

}  // namespace tutti::harness::measure
