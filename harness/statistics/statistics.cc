// SPDX-License-Identifier: Apache-2.0
#include "harness/statistics/statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "harness/statistics/dependence.h"
#include "harness/statistics/splitmix.h"
#include "impl/types/scramble.h"
#include "impl/types/status.h"

namespace tutti::harness::statistics {
namespace {

constexpr std::int64_t kExactUpTo = 1000;  // 2^-1000 is still a normal double
constexpr double kTail = 0.025;            // on each side of a 95 % interval

/// The largest k with P(Binomial(n, 1/2) <= k - 1) <= kTail.
std::int64_t exact_low_rank(std::int64_t n) {
  double term = std::ldexp(1.0, -static_cast<int>(n));  // P(Binomial = k)
  double below = term;                                  // P(Binomial <= k)
  std::int64_t k = 0;
  while (below <= kTail) {
    term *= static_cast<double>(n - k) / static_cast<double>(k + 1);
    below += term;
    ++k;
  }
  return k;
}

/// In whole numbers, so that 95 % of 20 is rank 19 and not the 20th by rounding.
double nearest_rank(const std::vector<double>& sorted, std::size_t percent) {
  return sorted[(sorted.size() * percent + 99) / 100 - 1];
}

double middle_of(const std::vector<double>& sorted) {
  const std::size_t middle = sorted.size() / 2;
  if (sorted.size() % 2 == 1) return sorted[middle];
  return sorted[middle - 1] + (sorted[middle] - sorted[middle - 1]) / 2;
}

/// The value at a rank from 1 on that may lie between two samples.
double at_rank(const std::vector<double>& sorted, double rank) {
  const auto below = static_cast<std::size_t>(rank) - 1;
  const double part = rank - std::floor(rank);
  return part == 0 ? sorted[below] : sorted[below] + part * (sorted[below + 1] - sorted[below]);
}

/// All but the interval, from sorted samples, at least one.
Summary without_interval(const std::vector<double>& sorted) {
  Summary summary{
      .samples = std::ssize(sorted), .median = middle_of(sorted), .min = sorted.front(), .max = sorted.back()};
  if (summary.samples >= kLeastSamplesForP90) summary.p90 = nearest_rank(sorted, 90);
  if (summary.samples >= kLeastSamplesForP95) summary.p95 = nearest_rank(sorted, 95);
  if (summary.samples >= kLeastSamplesForP99) summary.p99 = nearest_rank(sorted, 99);
  return summary;
}

std::vector<double> sorted_of(std::span<const double> samples) {
  TUTTI_ASSERT(std::ranges::all_of(samples, [](double sample) { return std::isfinite(sample); }),
               "a sample of {} is not finite", samples.size());
  std::vector<double> sorted(samples.begin(), samples.end());
  std::ranges::sort(sorted);
  return sorted;
}

std::uint64_t seed_of(std::span<const double> samples) {
  std::uint64_t seed = 0;
  for (const double sample : samples) seed = scramble(seed ^ std::bit_cast<std::uint64_t>(sample));
  return seed;
}

}  // namespace

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  return middle_of(values);
}

std::optional<double> median_if_any(std::vector<double> values) {
  return values.empty() ? std::nullopt : std::optional(median_of(std::move(values)));
}

std::optional<IntervalRanks> median_interval_ranks(std::int64_t n) {
  if (n < kLeastSamplesForInterval) return std::nullopt;
  const double half_width = kNormalQuantile95 * std::sqrt(static_cast<double>(n));
  const std::int64_t low = n <= kExactUpTo
                               ? exact_low_rank(n)
                               : static_cast<std::int64_t>(std::floor((static_cast<double>(n) - half_width) / 2));
  return IntervalRanks{.low = low, .high = n + 1 - low};
}

Summary summarise(std::span<const double> samples) {
  if (samples.empty()) return {};
  const std::vector<double> sorted = sorted_of(samples);
  Summary summary = without_interval(sorted);
  if (const auto ranks = median_interval_ranks(summary.samples)) {
    summary.ci_low = sorted[static_cast<std::size_t>(ranks->low - 1)];
    summary.ci_high = sorted[static_cast<std::size_t>(ranks->high - 1)];
  }
  return summary;
}

OrderedSummary summarise_in_order(std::span<const double> samples, double tick) {
  if (samples.empty()) return {};
  std::vector<double> times(samples.begin(), samples.end());
  const auto [least, most] = std::ranges::minmax(times);
  if (tick > 0) {
    SplitMix random(seed_of(samples));
    const auto noise = [&] { return tick * (random.uniform() + random.uniform() - 1); };
    for (double& time : times) time = std::clamp(time + noise(), least, most);
  }
  const std::vector<double> sorted = sorted_of(times);
  OrderedSummary summary{without_interval(sorted)};
  summary.min = least;
  summary.max = most;
  if (summary.samples < kLeastSamplesInOrder) return summary;
  summary.autocorrelation = autocorrelation(samples);
  summary.inflation = sign_inflation(times, *summary.median);
  const auto n = static_cast<double>(summary.samples);
  const auto half_width = [&](double quantile) { return quantile / 2 * std::sqrt(n * summary.inflation); };
  const auto low = [&](double quantile) { return at_rank(sorted, std::max(1.0, (n + 1) / 2 - half_width(quantile))); };
  const auto high = [&](double quantile) { return at_rank(sorted, std::min(n, (n + 1) / 2 + half_width(quantile))); };
  summary.ci_low = low(kNormalQuantile95);
  summary.ci_high = high(kNormalQuantile95);
  summary.sure_low = low(kSureQuantile);
  summary.sure_high = high(kSureQuantile);
  return summary;
}

LaunchSpread spread_of(std::span<const Summary> launches) {
  std::vector<double> medians, halves;
  for (const Summary& launch : launches) {
    if (launch.median) medians.push_back(*launch.median);
    if (launch.ci_low && launch.ci_high) halves.push_back((*launch.ci_high - *launch.ci_low) / 2);
  }
  LaunchSpread spread{.within = summarise(halves).median};
  if (medians.size() > 1) {
    const auto [least, most] = std::ranges::minmax(medians);
    spread.between = (most - least) / 2;
  }
  return spread;
}

}  // namespace tutti::harness::statistics
