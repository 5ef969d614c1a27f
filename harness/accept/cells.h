// SPDX-License-Identifier: Apache-2.0
// What the first pass of the pairs measured, and the matrix of its cells. A cell is a sender and a receiver; its value
// is the logarithm of a speed. NaN stands for what was not measured.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "harness/accept/schedule.h"
#include "harness/floors.h"

namespace tutti::harness::accept {

inline constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

/// A test of the first pass.
struct Sample {
  int round = 0;
  int sender = 0, receiver = 0;
  double log_speed = kNothing;
};

/// A square of numbers by sender and receiver.
class Matrix {
 public:
  explicit Matrix(int nodes, double value = kNothing) : nodes_(nodes), values_(at(nodes) * at(nodes), value) {}
  [[nodiscard]] int nodes() const { return nodes_; }
  [[nodiscard]] double& operator()(int sender, int receiver) { return values_[index(sender, receiver)]; }
  [[nodiscard]] double operator()(int sender, int receiver) const { return values_[index(sender, receiver)]; }
  [[nodiscard]] const std::vector<double>& values() const { return values_; }

 private:
  [[nodiscard]] std::size_t index(int sender, int receiver) const { return at(sender) * at(nodes_) + at(receiver); }
  int nodes_;
  std::vector<double> values_;
};

/// The median, a quantile (0 to 1, the lower neighbour) and the number of those values that are numbers. NaN if there
/// is none. `values` are reordered.
[[nodiscard]] double median_of_numbers(std::vector<double>& values);
[[nodiscard]] double quantile_of_numbers(std::vector<double>& values, double quantile);
/// The upper one of the two in the middle of an even number.
[[nodiscard]] double high_median_of_numbers(std::vector<double>& values);
/// 0 for NaN.
[[nodiscard]] double or_zero(double value);

/// By sender, and by receiver: the medians of a matrix.
[[nodiscard]] std::vector<double> medians_of_rows(const Matrix& matrix);
[[nodiscard]] std::vector<double> medians_of_columns(const Matrix& matrix);
/// The standard deviation of a normal distribution with this median of absolute deviations. 0 if there are fewer than
/// two numbers.
[[nodiscard]] double robust_deviation(std::vector<double> values);

/// The noise of one test, by node and of the fleet: standard deviations. They come from the differences between a
/// pair's two directions, in which its leaves and its
/// round count alike.
struct NoiseOfTests {
  std::vector<double> nodes;
  double fleet = 0;
};
[[nodiscard]] NoiseOfTests noise_in(std::span<const Sample> samples, int nodes);

/// What rounds have in common is out of these cells: of several tests of a cell the median.
struct Fit {
  explicit Fit(int nodes) : cells(nodes) {}
  Matrix cells;
  std::vector<double> shifts;     ///< by round, what its tests had in common
  std::vector<double> residuals;  ///< by sample, beyond what its nodes, leaves and round explain
};
/// `leaves` by node; `rounds` of all samples. `sweeps`: how often each cell was tested.
[[nodiscard]] Fit fit_of(std::span<const Sample> samples, std::span<const int> leaves, int rounds, int sweeps);

}  // namespace tutti::harness::accept
