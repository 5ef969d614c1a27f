// SPDX-License-Identifier: Apache-2.0
// Computation: work for the processor alone, which a rank does while an operation is under way (overlap.h). It needs
// registers, and neither memory nor caches.
#pragma once

#include <cstdint>
#include <functional>

#include "harness/floors.h"

namespace tutti::harness::measure {

/// Part `index` of `parts` of what a rank computes.
using Compute = std::function<void(int index, int parts)>;

class Computation {
 public:
  /// As much computing as takes `time_us` here and now, at least one turn.
  [[nodiscard]] static Computation lasting(double time_us);

  [[nodiscard]] std::int64_t turns() const { return turns_; }
  /// Part `index` of `parts` of it, of about the same length.
  void run(int index = 0, int parts = 1) const;

 private:
  explicit Computation(std::int64_t turns) : turns_(turns) {}
  std::int64_t turns_;
};

}  // namespace tutti::harness::measure
