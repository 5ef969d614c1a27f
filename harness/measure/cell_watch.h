// SPDX-License-Identifier: Apache-2.0
// CellWatch notes what disturbed a cell while it was measured, as seen from outside. It looks at the cores of all
// ranks, at each host's own thread, and at the GPUs of its ranks.
#pragma once

#include <string>
#include <vector>

#include "harness/machine/disturbance.h"
#include "harness/machine/gpu.h"
#include "harness/measure/host.h"

namespace tutti::harness::measure {

class CellWatch {
 public:
  /// Begins. `cores`: of the ranks of all hosts, which host 0 looks at; they outlive the watch.
  /// `devices`: CUDA's numbers of the GPUs of this host's ranks.
  CellWatch(Host& host, const std::vector<int>& cores, Tree machine = Tree("/"), const std::vector<int>& devices = {});
  /// What was seen since (disturbances_of), which host 0 alone tells. All hosts call it. Errors: those of the host.
  [[nodiscard]] Result<std::string> end();

 private:
  [[nodiscard]] CoresCounted count_here() const;

  Host& host_;
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
