// SPDX-License-Identifier: Apache-2.0
#include "harness/statistics/two_samples.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "harness/statistics/statistics.h"
#include "impl/types/status.h"

namespace tutti::harness::statistics {
namespace {

constexpr std::int64_t kValuesCountedUpTo = 50;

/// P(U = u) for u = 0..first * second. The number of orders is the coefficient of q^u in the Gaussian binomial
/// coefficient: the product of (1 - q^(second + i)) / (1 - q^i) over i = 1..first.
std::vector<double> mann_whitney_distribution(std::int64_t first, std::int64_t second) {
  std::vector<double> probability(static_cast<std::size_t>(first * second) + 1, 0);
  probability[0] = 1;
  for (std::int64_t i = 1; i <= first; ++i) {
    const auto up = static_cast<std::size_t>(second + i);
    const auto down = static_cast<std::size_t>(i);
    for (std::size_t u = probability.size(); u-- > up;) probability[u] -= probability[u - up];
    for (std::size_t u = down; u < probability.size(); ++u) probability[u] += probability[u - down];
    // The product so far counts the choices of i values among second + i.
    for (double& one : probability) one *= static_cast<double>(i) / static_cast<double>(second + i);
  }
  return probability;
}

/// P(U <= u) for u = 0..first * second.
std::vector<double> mann_whitney_tail(std::int64_t first, std::int64_t second) {
  const auto products = static_cast<double>(first * second);
  if (std::max(first, second) <= kValuesCountedUpTo) {
    std::vector<double> tail = mann_whitney_distribution(std::min(first, second), std::max(first, second));
    double below = 0;
    for (double& one : tail) one = below += one;
    return tail;
  }
  const double deviation = std::sqrt(products * static_cast<double>(first + second + 1) / 12);
  std::vector<double> tail(static_cast<std::size_t>(first * second) + 1);
  for (std::size_t u = 0; u < tail.size(); ++u) {
    tail[u] = 0.5 * std::erfc(-(static_cast<double>(u) + 0.5 - products / 2) / deviation / std::sqrt(2.0));
  }
  return tail;
}

}  // namespace

double mann_whitney_probability(std::int64_t first, std::int64_t second, std::int64_t most) {
  if (most < 0) return 0;
  if (most >= first * second) return 1;
  return mann_whitney_tail(first, second)[static_cast<std::size_t>(most)];
}

Shift shift_between(std::span<const double> mine, std::span<const double> other, double confidence) {
  TUTTI_ASSERT(!mine.empty() && !other.empty(), "{} and {} values", mine.size(), other.size());
  const auto is_finite = [](double one) { return std::isfinite(one); };
  TUTTI_ASSERT(std::ranges::all_of(mine, is_finite) && std::ranges::all_of(other, is_finite), "a value is not finite");
  std::vector<double> differences;
  differences.reserve(mine.size() * other.size());
  for (const double a : mine) {
    for (const double b : other) differences.push_back(a - b);
  }
  std::ranges::sort(differences);
  Shift shift{.middle = median_of(differences)};
  const std::vector<double> tail = mann_whitney_tail(std::ssize(mine), std::ssize(other));
  const auto beyond = std::ranges::upper_bound(tail, (1 - confidence) / 2);
  const auto k = static_cast<std::size_t>(beyond - tail.begin());  // P(U <= k - 1) is within the tail
  if (k == 0) return shift;
  shift.low = differences[k - 1];
  shift.high = differences[differences.size() - k];
  shift.covers = 1 - 2 * tail[k - 1];
  return shift;
}

}  // namespace tutti::harness::statistics
