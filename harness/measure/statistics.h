// SPDX-License-Identifier: Apache-2.0
// What a list of samples says: its median, how sure that median is, and its tails.
//
// Nothing is assumed of the distribution. The interval of the median is made of order statistics (Hoefler & Belli,
// SC'15): the samples at ranks k and n+1-k hold the true median between them with at least 95 % probability. A number
// that the samples cannot support is empty, never a guess: no interval below 6 samples, no p95 below 20, no p99 below
// 100.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace tutti::harness {

inline constexpr std::int64_t kLeastSamplesForInterval = 6;
inline constexpr std::int64_t kLeastSamplesForP95 = 20;
inline constexpr std::int64_t kLeastSamplesForP99 = 100;

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
  std::optional<double> p95 = {};  ///< nearest rank: the least sample that at least 95 % of them do not exceed
  std::optional<double> p99 = {};
  std::optional<double> max = {};
};

/// Samples in any order, finite (asserted): a time that is NaN is a bug of whoever took it.
[[nodiscard]] Summary summarise(std::span<const double> samples);

}  // namespace tutti::harness
