// SPDX-License-Identifier: Apache-2.0
#include "harness/statistics/paired.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "impl/types/status.h"

namespace tutti::harness::statistics {
namespace {

constexpr std::int64_t kCountedUpTo = 100;

/// P(T = t) for t = 0..n(n+1)/2: each rank in turn is in the sum or not.
std::vector<double> signed_rank_distribution(std::int64_t pairs) {
  std::vector<double> probability{1};
  for (std::int64_t rank = 1; rank <= pairs; ++rank) {
    const auto step = static_cast<std::size_t>(rank);
    std::vector<double> next(probability.size() + step, 0);
    for (std::size_t t = 0; t < probability.size(); ++t) {
      next[t] += probability[t] / 2;
      next[t + step] += probability[t] / 2;
    }
    probability = std::move(next);
  }
  return probability;
}

/// The largest k with P(T <= k - 1) <= tail; 0 where there is none.
std::int64_t rank_of_end(std::int64_t pairs, double tail) {
  if (pairs <= kCountedUpTo) {
    std::int64_t k = 0;
    double below = 0;
    for (const double probability : signed_rank_distribution(pairs)) {
      below += probability;
      if (below > tail) break;
      ++k;
    }
    return k;
  }
  std::int64_t low = 0, high = pairs * (pairs + 1) / 2;
  while (low < high) {
    const std::int64_t middle = (low + high + 1) / 2;
    signed_rank_probability(pairs, middle - 1) <= tail ? low = middle : high = middle - 1;
  }
  return low;
}

}  // namespace

double signed_rank_probability(std::int64_t pairs, std::int64_t most) {
  if (most < 0) return 0;
  if (most >= pairs * (pairs + 1) / 2) return 1;
  if (pairs <= kCountedUpTo) {
    const std::vector<double> distribution = signed_rank_distribution(pairs);
    double sum = 0;
    for (std::int64_t t = 0; t <= most; ++t) sum += distribution[static_cast<std::size_t>(t)];
    return sum;
  }
  const auto n = static_cast<double>(pairs);
  const double deviation = std::sqrt(n * (n + 1) * (2 * n + 1) / 24);
  return 0.5 * std::erfc(-(static_cast<double>(most) + 0.5 - n * (n + 1) / 4) / deviation / std::sqrt(2.0));
}

MiddleOfPairs middle_of_pairs(std::span<const double> differences, double confidence) {
  TUTTI_ASSERT(!differences.empty(), "no pairs");
  TUTTI_ASSERT(std::ranges::all_of(differences, [](double one) { return std::isfinite(one); }),
               "a difference of {} is not finite", differences.size());
  std::vector<double> means;
  for (std::size_t i = 0; i < differences.size(); ++i) {
    for (std::size_t j = i; j < differences.size(); ++j) means.push_back((differences[i] + differences[j]) / 2);
  }
  std::ranges::sort(means);
  const std::size_t half = means.size() / 2;
  MiddleOfPairs result{.pairs = std::ssize(differences),
                       .middle = means.size() % 2 == 1 ? means[half] : (means[half - 1] + means[half]) / 2};
  const std::int64_t k = rank_of_end(result.pairs, (1 - confidence) / 2);
  if (k == 0) return result;
  result.low = means[static_cast<std::size_t>(k - 1)];
  result.high = means[means.size() - static_cast<std::size_t>(k)];
  result.covers = 1 - 2 * signed_rank_probability(result.pairs, k - 1);
  return result;
}

}  // namespace tutti::harness::statistics
