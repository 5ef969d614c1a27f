// SPDX-License-Identifier: Apache-2.0
// CellWatch notes what disturbed a cell while it was measured, as seen from outside. It looks at the cores of all
// ranks, at each runner's own thread, and at the GPUs of its ranks.
#pragma once

#include <string>
#include <vector>

#include "harness/machine/disturbance.h"
#include "harness/machine/gpu.h"
#include "harness/measure/runner.h"

namespace tutti::harness::measure {

class CellWatch {
 public:
  /// Begins. `cores`: of the ranks of all runners, which runner 0 looks at; they outlive the watch.
  /// `devices`: CUDA's numbers of the GPUs of this runner's ranks.
  CellWatch(Runner& runner, const std::vector<int>& cores, Tree machine = Tree("/"),
            const std::vector<int>& devices = {});
  /// What was seen since (disturbances_of), which runner 0 alone tells. All runners call it. Errors: those of the
  /// runner.
  [[nodiscard]] Result<std::string> end();

 private:
  [[nodiscard]] CoresCounted count_here() const;

  Runner& runner_;
  const std::vector<int>& cores_;
  Tree machine_;
  Watched watched_;
  ThreadCounted before_;
  struct WatchedGpu {
    int device = 0;
    GpuSeen before;
  };
  std::vector<WatchedGpu> gpus_;  // none where NVML is not there
};

}  // namespace tutti::harness::measure
