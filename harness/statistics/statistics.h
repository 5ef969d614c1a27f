// SPDX-License-Identifier: Apache-2.0
// What a list of samples says: its median, how sure that median is, and its tails.
//
// Nothing is assumed of the distribution. The interval of the median is made of order statistics (Hoefler & Belli,
// SC'15): the samples at ranks k and n+1-k hold the true median between them with at least 95 % probability. A number
// that the samples cannot support is empty, never a guess. There is no interval below 6 samples, no p90 below 10, no
// p95 below 20, no p99 below 100.
//
// There are two kinds of samples. summarise takes samples that know nothing of each other, such as the medians of
// launches: for them the textbook's interval is exact. summarise_in_order takes times measured one after the other.
// Neighbours may resemble each other, a clock ticks them, and a stopping rule decided how many there are (settling.h).
// What each interval really covers was simulated: README.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "harness/floors.h"

namespace tutti::harness::statistics {

inline constexpr std::int64_t kLeastSamplesForInterval = 6;
inline constexpr std::int64_t kLeastSamplesForP90 = 10;
inline constexpr std::int64_t kLeastSamplesForP95 = 20;
inline constexpr std::int64_t kLeastSamplesForP99 = 100;

/// Of at least one value, in any order; of an even number the mean of the two in the middle.
[[nodiscard]] double median_of(std::vector<double> values);
/// The same; empty of none.
[[nodiscard]] std::optional<double> median_if_any(std::vector<double> values);

/// Ranks, from 1, of the two samples in sorted order that bound the 95 % interval of the median of n samples: exact
/// binomial up to n = 1000, its normal approximation beyond.
struct IntervalRanks {
  std::int64_t low = 0;
  std::int64_t high = 0;

  bool operator==(const IntervalRanks&) const = default;
};
/// Empty below kLeastSamplesForInterval.
[[nodiscard]] std::optional<IntervalRanks> median_interval_ranks(std::int64_t n);

/// Units are those of the samples.
struct Summary {
  std::int64_t samples = 0;
  std::optional<double> median = {};  ///< of an even number: the mean of the two in the middle
  std::optional<double> ci_low = {};
  std::optional<double> ci_high = {};
  std::optional<double> min = {};
  std::optional<double> p90 = {};
  std::optional<double> p95 = {};  ///< nearest rank: the least sample that at least 95 % of them do not exceed
  std::optional<double> p99 = {};
  std::optional<double> max = {};
};

/// Samples in any order, finite (asserted): a time that is NaN is a bug of the code that took it.
[[nodiscard]] Summary summarise(std::span<const double> samples);

inline constexpr std::int64_t kLeastSamplesInOrder = 12;  ///< for an interval and an autocorrelation

struct OrderedSummary : Summary {
  std::optional<double> autocorrelation = {};  ///< lag 1
  double inflation = 1;  ///< samples / inflation independent samples would say as much (dependence.h)
  /// An interval of the median that misses it in 1 of 15,000, for the stopping rule; as ci_low and ci_high otherwise.
  std::optional<double> sure_low = {};
  std::optional<double> sure_high = {};
};
inline constexpr double kNormalQuantile95 = 1.959963984540054;  ///< of two-sided intervals
inline constexpr double kSureQuantile = 4;                      ///< of sure_low, sure_high

/// Of times taken one after the other, in that order, by a clock that tells times apart which differ by `tick` or more.
/// The ends of the interval lie at ranks (n+1)/2 -+ z/2 sqrt(n x inflation) of the sorted samples. Between two of them
/// they are interpolated, so that the coverage does not jump from n to n (after Hettmansperger & Sheather 1986, Stat.
/// Prob. Letters 4:75). Each reading stands for any time within a tick of it. So the median, its interval and the
/// percentiles are those of the readings with noise added. The noise is the sum of two numbers from [-tick/2, tick/2],
/// and stays within the least and the most that was read (after Machado & Santos Silva 2005, JASA 100:1226). Without
/// it, an interval between equal readings would have no width. It is drawn anew for other readings, and the same for
/// the same ones. One such number is too few. What lies between two readings is then a straight line, which misses the
/// median by up to 1.5 % of a tick.
[[nodiscard]] OrderedSummary summarise_in_order(std::span<const double> samples, double tick = 0);

/// Of the same cell in several launches: how far their medians lie apart, and how sure each is of itself.
struct LaunchSpread {
  std::optional<double> between = {};  ///< half of the range of the launches' medians; from two launches on
  std::optional<double> within = {};   ///< the median of half the width of each launch's own interval
};
[[nodiscard]] LaunchSpread spread_of(std::span<const Summary> launches);

}  // namespace tutti::harness::statistics
