// SPDX-License-Identifier: Apache-2.0
// Long runs of equal steps. After a while each further block of them takes equally long, so few of them are walked, and
// the time of the others is that of the last ones.
#pragma once

#include <vector>

#include "harness/floors.h"
#include "harness/simulate/walk.h"
#include "impl/schedule/schedule.h"

namespace tutti::harness::simulate {

/// Steps `first` to first + length - 1 of every rank cost the same, with peers that lie the same way.
struct StepRun {
  int first = 0;
  int length = 0;
};

/// Those of at least `least` steps. Ranks 0 to `alike` - 1 are looked at; all others are like them.
[[nodiscard]] std::vector<StepRun> runs_of(const Schedule& schedule, int alike, int least);
/// The schedule with only the first `kept[i]` steps of run i.
[[nodiscard]] Schedule cut(const Schedule& schedule, const std::vector<StepRun>& runs, const std::vector<int>& kept);

/// As walk, of a schedule that has runs. Walks a few steps of each run, then more, until every rank's time rises by the
/// same with each further block of steps. Walks all steps if it never does.
[[nodiscard]] Result<Prediction> walk_runs(const Schedule& schedule, const std::vector<StepRun>& runs,
                                           double block_bytes, const Machine& machine, const WalkOptions& options);

}  // namespace tutti::harness::simulate
