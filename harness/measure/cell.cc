// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/cell.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "harness/measure/block.h"
#include "harness/measure/statistics.h"

namespace tutti::harness {
namespace {

constexpr std::size_t kLeastSamples = 100;
constexpr std::size_t kMostSamples = 5000;
/// The interval of the median is narrow enough at this half-width (of the median): wider below 50 us, where single
/// samples tick.
constexpr double kNarrow = 0.01;
constexpr double kNarrowBelow50us = 0.02;
constexpr double kBlockUs = 40e3;  ///< aimed at; slow operations have fewer samples in a block
constexpr int kLeastSamplesPerBlock = 2;
constexpr int kRepeatsOfUnsteadyBlock = 3;
// A streaming sample: long enough that neither the start nor the clock counts, short enough for some hundreds of them.
constexpr int kFirstLoop = 10;    ///< operations, before it is known how long one takes
constexpr int kShortestLoop = 4;  ///< fewer are no stream
constexpr int kLongestLoop = 2000;
constexpr double kLoopUs = 200;

struct Block {
  std::vector<double> times_us;
  std::vector<int> slowest;
  std::optional<double> line_ns;
};

/// All blocks of one variant.
struct Series {
  std::vector<Block> blocks;
  std::int64_t wrong = 0;
  std::string reason;
  int samples_per_block = kMostSamplesPerBlock;
  int operations = 1;    ///< in a sample
  bool is_tuned = true;  ///< false: the first block of a stream tells how long its loops should be
};

Series series_for(const Case& one) {
  Series series;
  series.is_tuned = one.cadence != Cadence::streaming;
  series.operations = series.is_tuned ? 1 : kFirstLoop;
  return series;
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<double> times_of(const Series& series) {
  std::vector<double> times;
  for (const Block& block : series.blocks) times.insert(times.end(), block.times_us.begin(), block.times_us.end());
  return times;
}

bool is_settled(const Series& series) {
  const std::vector<double> times = times_of(series);
  if (times.size() < kLeastSamples) return false;
  if (times.size() >= kMostSamples) return true;
  const Summary summary = summarise(times);
  const double narrow = *summary.median < 50 ? kNarrowBelow50us : kNarrow;
  return *summary.ci_high - *summary.ci_low <= 2 * narrow * *summary.median;
}

/// Line round trips of all blocks of all variants; the state in which most of the cell was measured is around the
/// median.
std::optional<double> prevailing_line(const std::vector<Series>& all) {
  std::vector<double> lines;
  for (const Series& series : all) {
    for (const Block& block : series.blocks) {
      if (block.line_ns) lines.push_back(*block.line_ns);
    }
  }
  return lines.empty() ? std::nullopt : std::optional(median_of(std::move(lines)));
}

/// Keeps the blocks of the prevailing state, unless a variant has none there: its own line_ns then says so.
void keep_one_state(std::vector<Series>& all) {
  const std::optional<double> line = prevailing_line(all);
  if (!line) return;
  for (Series& series : all) {
    std::vector<Block> kept;
    for (const Block& block : series.blocks) {
      if (is_same_state(*block.line_ns, *line)) kept.push_back(block);
    }
    if (!kept.empty()) series.blocks = std::move(kept);
  }
}

std::optional<double> line_of(const Series& series) {
  std::vector<double> lines;
  for (const Block& block : series.blocks) {
    if (block.line_ns) lines.push_back(*block.line_ns);
  }
  return lines.empty() ? std::nullopt : std::optional(median_of(std::move(lines)));
}

std::optional<std::int64_t> slowest_of(const Series& series) {
  std::map<int, int> times_last;
  for (const Block& block : series.blocks) {
    for (const int rank : block.slowest) ++times_last[rank];
  }
  const auto most = std::max_element(times_last.begin(), times_last.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == times_last.end() ? std::nullopt : std::optional<std::int64_t>(most->first);
}

Row row_for(const Variant& variant, const Series& series) {
  Row row = row_of(variant.instance());
  set_times(row, summarise(times_of(series)), variant.instance().problem());
  row.slowest_rank = slowest_of(series);
  row.line_ns = line_of(series);
  row.operations = series.operations;
  row.checked_on = checks_further(variant.instance()) ? "further" : "timed";
  row.wrong = series.wrong;
  row.verdict = series.wrong == 0 ? Verdict::ok : Verdict::wrong;
  row.reason = series.reason;
  return row;
}

/// What the blocks of a cell draw from, the same on all hosts.
struct Source {
  std::mt19937_64 random;
  std::uint64_t salt = 0;  ///< of the last refill

  /// Up to a quarter less than `most`, at least 1: whoever counts calls must not know which one is verified.
  int samples(int most) {
    const auto spread = static_cast<std::uint64_t>((most + 3) / 4);
    return std::max(1, most - static_cast<int>(random() % (spread + 1)));
  }
};

/// Runs one block of a variant, again where the machine changed its state meanwhile.
Status add_block(Host& host, Variant& variant, Series& series, Source& source, std::int64_t end_ns) {
  for (int repeat = 0; repeat <= kRepeatsOfUnsteadyBlock; ++repeat) {
    TUTTI_ASSIGN_OR_RETURN(BlockResult result, run_block(host, variant,
                                                         {.salt = source.salt + 1,
                                                          .samples = source.samples(series.samples_per_block),
                                                          .operations = series.operations,
                                                          .end_ns = end_ns}));
    source.salt += 2;  // a block has two refills
    if (series.wrong == 0) series.reason = result.reason;
    series.wrong += result.wrong;
    const bool has_time = result.last_instant_ns < end_ns;
    if (!result.is_steady() && has_time && repeat < kRepeatsOfUnsteadyBlock) continue;
    const double each = std::max(median_of(result.times_us), 1e-3);
    if (!series.is_tuned) {
      series.is_tuned = true;
      const int before = series.operations;
      const int longer = std::clamp(static_cast<int>(kLoopUs / each), kShortestLoop, kLongestLoop);
      if (has_time) series.operations = longer;
      if (series.operations != before) continue;  // loops of one length only
    }
    series.samples_per_block = std::clamp(static_cast<int>(kBlockUs / (each * series.operations)),
                                          kLeastSamplesPerBlock, kMostSamplesPerBlock);
    series.blocks.push_back({.times_us = std::move(result.times_us),
                             .slowest = std::move(result.slowest),
                             .line_ns = result.line_after_ns});
    return {};
  }
  return {};
}

/// Blocks in rounds, A B and then B A, until every series is settled or the time is over; one of each in any case. In
/// the first of each, what time there is is shared out, so that a slow variant leaves some to the others.
Status add_blocks(Host& host, std::vector<Variant>& variants, std::vector<Series>& all, const CellOptions& options) {
  const std::size_t count = variants.size();
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  Source source{.random = std::mt19937_64(options.seed), .salt = options.seed << 32U};
  std::shuffle(order.begin(), order.end(), source.random);

  TUTTI_ASSIGN_OR_RETURN(const std::int64_t end_ns, host.agree(monotonic_ns() + options.most_time.count()));
  for (std::size_t block = 0;; ++block) {
    const bool is_first = block < count;
    const bool is_round_over = block % (2 * count) == 0;
    if (!is_first && is_round_over && std::all_of(all.begin(), all.end(), is_settled)) return {};
    TUTTI_ASSIGN_OR_RETURN(const std::int64_t now_ns, host.agree(monotonic_ns()));
    if (!is_first && now_ns >= end_ns) return {};
    const std::int64_t share_ns = (end_ns - now_ns) / static_cast<std::int64_t>(is_first ? count - block : 1);
    const std::size_t i = order[block % count];
    TUTTI_RETURN_IF_ERROR(add_block(host, variants[i], all[i], source, now_ns + share_ns));
    if (block % count == count - 1) std::reverse(order.begin(), order.end());
  }
}

}  // namespace

Result<std::vector<Row>> measure_cell(Host& host, std::vector<Variant>& variants, const CellOptions& options) {
  std::vector<Series> all;
  for (const Variant& variant : variants) all.push_back(series_for(variant.instance()));
  TUTTI_RETURN_IF_ERROR(add_blocks(host, variants, all, options));
  keep_one_state(all);
  std::vector<Row> rows;
  for (std::size_t i = 0; i < variants.size() && host.index() == 0; ++i) rows.push_back(row_for(variants[i], all[i]));
  return rows;
}

Result<double> measure_floor(Host& host) {
  struct Times {
    std::array<std::int64_t, kMostSamplesPerBlock> enter{};
    std::array<std::int64_t, kMostSamplesPerBlock> leave{};
  };
  constexpr int kBlocks = 10;
  std::vector<double> floors;
  for (int block = 0; block < kBlocks; ++block) {
    Times mine;
    for (std::size_t i = 0; i < mine.enter.size(); ++i) {
      const auto instant = host.start_together();
      if (!instant.is_ok()) return instant.status();
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

}  // namespace tutti::harness
