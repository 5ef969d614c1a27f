// SPDX-License-Identifier: Apache-2.0
// The serial run that judges a training: the steps of a window, computed again from what the ranks began it with.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/train/network.h"
#include "harness/train/shares.h"

namespace tutti::harness::train {

/// What is learned, and with which momentum.
struct Model {
  std::vector<float> parameters;
  std::vector<float> velocity;

  /// A step of stochastic gradient descent with momentum. Shapes: sums[kParameters], of the gradients of `ranks` ranks.
  void take_step(std::span<const float> sums, int ranks, float rate, float momentum);
};

/// What one step's sums are against those of a serial run.
struct Comparison {
  bool has_bits = true;   ///< those of the serial sum
  double of_bound = 0;    ///< largest |difference| / (P eps sum|g|); infinite where one of both is no number
  std::size_t worst = 0;  ///< the element that has it, or the first with other bits
  float is = 0;           ///< there
  float should = 0;

  /// "element 17 of fc2.weight is 0.25, and the serial run has 0.5"
  [[nodiscard]] std::string text() const;
};

class SerialRun {
 public:
  SerialRun(const Digits& digits, const Shares& shares, int ranks) : digits_(digits), shares_(shares), ranks_(ranks) {}

  /// Computes the shares of all ranks in `step` one after the other, adds them in rank order, and compares `sums` with
  /// that. Shapes: parameters and sums [kParameters].
  [[nodiscard]] Comparison compare(std::span<const float> parameters, std::size_t step, std::span<const float> sums);

 private:
  const Digits& digits_;
  Shares shares_;
  int ranks_;
  Network network_;
  std::vector<float> gradient_, sum_, size_;
};

/// Of bits: equal where all are.
[[nodiscard]] std::uint64_t hash_of(std::span<const float> values);

}  // namespace tutti::harness::train
