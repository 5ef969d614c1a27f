// SPDX-License-Identifier: Apache-2.0
#include "harness/statistics/dependence.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "harness/statistics/splitmix.h"

namespace tutti::harness::statistics {
namespace {

constexpr std::size_t kEnoughToShow = 100;  // samples
constexpr std::size_t kResamples = 1000;
constexpr double kQuantile = 1.959963984540054;  // of the resamples, in standard deviations: 95 %
// What the simulation (README.md) needs: for signs of a process with lag 1 of 0.5, and for the width of what is
// estimated.
constexpr double kMostAssumed = 2.3;
constexpr double kMargin = 1.1;
constexpr double kLongerBlocks = 1.5;

/// -1/2 below the median, 1/2 above it, less their mean: where many samples equal the median, it is not 0.
std::vector<double> signs_of(std::span<const double> samples, double median) {
  std::vector<double> signs;
  for (const double sample : samples) signs.push_back(sample < median ? -0.5 : sample > median ? 0.5 : 0);
  const double mean = std::accumulate(signs.begin(), signs.end(), 0.0) / static_cast<double>(signs.size());
  for (double& sign : signs) sign -= mean;
  return signs;
}

/// Lag 1 of the signs without its bias to first order (Kendall 1954, Biometrika 41:403).
double lag_of(const std::vector<double>& signs) {
  const double squares = std::inner_product(signs.begin(), signs.end(), signs.begin(), 0.0);
  if (squares == 0) return 0;
  const double lag = std::inner_product(signs.begin() + 1, signs.end(), signs.begin(), 0.0) / squares;
  return std::min(lag + (1 + 3 * lag) / static_cast<double>(signs.size()), 0.95);
}

/// That of a process of order 1 with this lag 1.
double inflation_of(double lag) { return (1 + lag) / (1 - lag); }

/// The same, seen through blocks of `length` samples.
double inflation_in_blocks(double lag, std::size_t length) {
  double sum = 1;
  for (std::size_t k = 1; k < length; ++k) {
    sum += 2 * (1 - static_cast<double>(k) / static_cast<double>(length)) * std::pow(lag, static_cast<double>(k));
  }
  return sum;
}

std::size_t block_length(std::size_t n, double lag) {
  const double best = std::cbrt(6.0 * static_cast<double>(n)) * std::pow(lag / (1 - lag * lag), 2.0 / 3);
  return std::clamp(static_cast<std::size_t>(std::ceil(kLongerBlocks * best)), std::size_t{2}, n / 8);
}

/// The 95 % quantile of what resampled blocks of signs sum up to, over that of n independent signs, squared.
double bootstrap(const std::vector<double>& signs, std::size_t length, std::uint64_t seed) {
  const std::size_t n = signs.size();
  std::vector<double> blocks(n);
  double sum = std::accumulate(signs.begin(), signs.begin() + static_cast<std::ptrdiff_t>(length), 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    blocks[i] = sum;
    sum += signs[(i + length) % n] - signs[i];
  }
  const std::size_t count = (n + length - 1) / length;
  SplitMix random(seed);
  std::vector<double> sums(kResamples);
  for (double& total : sums) {
    total = 0;
    for (std::size_t k = 0; k < count; ++k) total += blocks[random.below(n)];
    total = std::abs(total);
  }
  const auto place = sums.begin() + kResamples * 95 / 100 - 1;
  std::nth_element(sums.begin(), place, sums.end());
  const double drawn = static_cast<double>(count * length);
  return 4 * *place * *place / (kQuantile * kQuantile * drawn);
}

}  // namespace

std::optional<double> autocorrelation(std::span<const double> samples) {
  if (samples.size() < 2) return std::nullopt;
  const double mean = std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
  double products = 0, squares = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double apart = samples[i] - mean;
    squares += apart * apart;
    if (i > 0) products += apart * (samples[i - 1] - mean);
  }
  return squares > 0 ? std::optional(products / squares) : std::nullopt;
}

double sign_inflation(std::span<const double> samples, double median, std::uint64_t seed) {
  if (samples.size() < 2) return 1;
  const std::vector<double> signs = signs_of(samples, median);
  const double lag = lag_of(signs);
  const auto n = static_cast<double>(samples.size());
  const double doubt = 1 / std::sqrt(n);  // the standard error of a lag that is 0
  if (samples.size() < kEnoughToShow) {
    const double likely = inflation_of(lag);
    return std::max(1.0, std::min(inflation_of(std::min(0.9, lag + doubt)), std::max(kMostAssumed, likely)));
  }
  if (lag < doubt) return 1;
  const std::size_t length = block_length(samples.size(), lag);
  // Few blocks: what they vary by is itself unsure, as with Student's t of `freedom` degrees of freedom; overlapping
  // blocks count one and a half times. And circular blocks vary about the mean of the samples, not the true one.
  const double freedom = 1.5 * n / static_cast<double>(length);
  const double student = 1 + (kQuantile * kQuantile + 1) / (4 * freedom);
  const double left_out = inflation_of(lag) / inflation_in_blocks(lag, length);
  const double centring = 1 / (1 - static_cast<double>(length) / n);
  const double drawn = bootstrap(signs, length, seed) * left_out * centring * student * student;
  return kMargin * std::max({1.0, drawn, inflation_of(lag)});
}

}  // namespace tutti::harness::statistics
