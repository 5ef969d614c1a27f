// SPDX-License-Identifier: Apache-2.0
// The time of an algorithm on a machine, for any number of bytes: chooses the ranks to walk and the order.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "harness/floors.h"
#include "harness/simulate/model.h"
#include "harness/simulate/runs.h"
#include "harness/simulate/symmetry.h"
#include "harness/simulate/walk.h"
#include "impl/algorithms/algorithm.h"

namespace tutti::harness::simulate {

inline constexpr std::int64_t kMostSteps = 100'000'000;  ///< of all ranks that are walked

class Predictor {
 public:
  /// Ranks are dealt to the machine's nodes in their order. Errors: unavailable if more than `most_steps` steps would
  /// have to be walked, or an added algorithm has no steps for the problem.
  [[nodiscard]] static Result<Predictor> make(const Algorithm& algorithm, Problem problem, const Machine& machine,
                                              std::int64_t most_steps = kMostSteps);

  /// `block_bytes`: of one block of the problem (Count in collective.h). Errors: as walk.
  [[nodiscard]] Result<Prediction> at(double block_bytes) const;
  /// With path and loads of all its steps. Errors: as walk; unavailable if there are too many to be kept.
  [[nodiscard]] Result<Prediction> details(double block_bytes) const;
  [[nodiscard]] const Schedule& schedule() const { return schedule_; }
  /// How many ranks stand for all.
  [[nodiscard]] int walked() const { return period_ > 0 ? period_ : schedule_.problem.ranks; }

 private:
  Predictor(Schedule schedule, const Machine& machine, int period, std::vector<StepRun> runs)
      : schedule_(std::move(schedule)), machine_(machine), period_(period), runs_(std::move(runs)) {}

  Schedule schedule_;
  Machine machine_;
  int period_;
  std::vector<StepRun> runs_;
};

/// Ranks that fill nodes of this machine, or lie on one of them: the number nearest to `ranks`.
[[nodiscard]] int nearest_ranks(int ranks, const Machine& machine);

}  // namespace tutti::harness::simulate
