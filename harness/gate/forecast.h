// SPDX-License-Identifier: Apache-2.0
// How long a gate takes: by its plan before the first launch, and by its blocks once there are some.
#pragma once

#include <chrono>
#include <span>

#include "harness/cases/case.h"

namespace tutti::harness::gate {

/// One block of the contest.
struct BlockPlan {
  std::chrono::nanoseconds cell_time{};  ///< for a cell in a launch
  int launches = 4;                      ///< of each group of cells
};

class Forecast {
 public:
  explicit Forecast(BlockPlan plan) : plan_(plan) {}

  /// How long `number` blocks of these cases take, as long as those before; for the first one, as long as its launches
  /// may take.
  [[nodiscard]] std::chrono::nanoseconds blocks(std::span<const Case> cases, int number) const;
  /// That a block of these cases took `took`.
  void add(std::span<const Case> cases, std::chrono::nanoseconds took);

 private:
  [[nodiscard]] std::chrono::nanoseconds planned(std::span<const Case> cases) const;

  BlockPlan plan_;
  std::chrono::nanoseconds planned_so_far_{};
  std::chrono::nanoseconds took_so_far_{};
};

}  // namespace tutti::harness::gate
