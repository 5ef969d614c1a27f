// SPDX-License-Identifier: Apache-2.0
#include "harness/train/replay.h"

#include <bit>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "impl/types/scramble.h"

namespace tutti::harness::train {

void Model::take_step(std::span<const float> sums, int ranks, float rate, float momentum) {
  const auto count = static_cast<float>(ranks);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    velocity[i] = momentum * velocity[i] + sums[i] / count;
    parameters[i] -= rate * velocity[i];
  }
}

std::string Comparison::text() const {
  for (const Tensor& tensor : kTensors) {
    if (worst - tensor.first >= tensor.count) continue;
    return fmt::format("element {} of {} is {}, and the serial run has {}", worst - tensor.first, tensor.name, is,
                       should);
  }
  return "";
}

// Both this sum and that of the system are within (P-1)u / (1 - (P-1)u) sum|g| of the exact one, u = eps / 2, whatever
// the order. So they differ by at most P eps sum|g|.
Comparison SerialRun::compare(std::span<const float> parameters, std::size_t step, std::span<const float> sums) {
  gradient_.resize(kParameters);
  size_.assign(kParameters, 0);
  for (int rank = 0; rank < ranks_; ++rank) {
    network_.forward(parameters, {.digits = digits_, .indices = shares_.batch(step, rank)});
    static_cast<void>(network_.backward(parameters, gradient_));  // no hook, no error
    if (rank == 0) sum_ = gradient_;
    for (std::size_t i = 0; i < kParameters; ++i) {
      if (rank > 0) sum_[i] += gradient_[i];
      size_[i] += std::abs(gradient_[i]);
    }
  }
  constexpr double kEps = std::numeric_limits<float>::epsilon();
  Comparison comparison;
  for (std::size_t i = 0; i < kParameters; ++i) {
    if (std::bit_cast<std::uint32_t>(sums[i]) == std::bit_cast<std::uint32_t>(sum_[i])) continue;
    const double difference = std::abs(static_cast<double>(sums[i]) - static_cast<double>(sum_[i]));
    const double bound = ranks_ * kEps * static_cast<double>(size_[i]);
    double share = difference == 0 ? 0 : difference / bound;  // 0 and -0 have other bits
    if (const bool is_number = std::isfinite(sums[i]); !is_number || !std::isfinite(sum_[i])) {
      share = is_number == std::isfinite(sum_[i]) ? 0 : std::numeric_limits<double>::infinity();
    }
    if (!comparison.has_bits && share <= comparison.of_bound) continue;
    comparison = {.has_bits = false, .of_bound = share, .worst = i, .is = sums[i], .should = sum_[i]};
  }
  return comparison;
}

std::uint64_t hash_of(std::span<const float> values) {
  std::uint64_t hash = values.size();
  for (const float value : values) hash = scramble(hash ^ std::bit_cast<std::uint32_t>(value));
  return hash;
}

}  // namespace tutti::harness::train
