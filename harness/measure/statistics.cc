// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "impl/types/status.h"

namespace tutti::harness {
namespace {

constexpr std::int64_t kExactUpTo = 1000;  // 2^-1000 is still a normal double
constexpr double kTail = 0.025;            // on each side of a 95 % interval
constexpr double kNormalQuantile = 1.959963984540054;

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

double median_of(const std::vector<double>& sorted) {
  const std::size_t middle = sorted.size() / 2;
  if (sorted.size() % 2 == 1) return sorted[middle];
  return sorted[middle - 1] + (sorted[middle] - sorted[middle - 1]) / 2;
}

}  // namespace

std::optional<IntervalRanks> median_interval_ranks(std::int64_t n) {
  if (n < kLeastSamplesForInterval) return std::nullopt;
  const double half_width = kNormalQuantile * std::sqrt(static_cast<double>(n));
  const std::int64_t low = n <= kExactUpTo
                               ? exact_low_rank(n)
                               : static_cast<std::int64_t>(std::floor((static_cast<double>(n) - half_width) / 2));
  return IntervalRanks{.low = low, .high = n + 1 - low};
}

Summary summarise(std::span<const double> samples) {
  Summary summary{.samples = std::ssize(samples)};
  if (samples.empty()) return summary;
  TUTTI_ASSERT(std::ranges::all_of(samples, [](double sample) { return std::isfinite(sample); }),
               "a sample of {} is not finite", samples.size());
  std::vector<double> sorted(samples.begin(), samples.end());
  std::ranges::sort(sorted);
  summary.median = median_of(sorted);
  summary.min = sorted.front();
  summary.max = sorted.back();
  if (const auto ranks = median_interval_ranks(summary.samples)) {
    summary.ci_low = sorted[static_cast<std::size_t>(ranks->low - 1)];
    summary.ci_high = sorted[static_cast<std::size_t>(ranks->high - 1)];
  }
  if (summary.samples >= kLeastSamplesForP95) summary.p95 = nearest_rank(sorted, 95);
  if (summary.samples >= kLeastSamplesForP99) summary.p99 = nearest_rank(sorted, 99);
  return summary;
}

}  // namespace tutti::harness
