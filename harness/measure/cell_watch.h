// SPDX-License-Identifier: Apache-2.0
// CellWatch notes what disturbed a cell while it was measured, as seen from outside. It looks at the cores of all
// ranks, and at each host's own thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/machine/disturbance.h"
#include "harness/machine/gpu.h"
#include "harness/measure/host.h"

namespace tutti::harness::measure {

class CellWatch {
 public:
  /// Begins. `cores`: of the ranks of all hosts, which host 0 looks at; they outlive the watch.
  /// `device`: CUDA's number of the GPU of this host's rank; empty: it has none.
  CellWatch(Host& host, const std::vector<int>& cores, Tree machine = Tree("/"), std::optional<int> device = {});
  /// What was seen since (disturbances_of), which host 0 alone tells. All hosts call it. Errors: those of the host.
  [[nodiscard]] Result<std::string> end();

 private:
  [[nodiscard]] CoresCounted count_here() const;

  Host& host_;
  const std::vector<int>& cores_;
  Tree machine_;
  Watched watched_;
  ThreadCounted before_;
  std::optional<int> device_;
  GpusSeen gpu_before_;  ///< nothing where it has none, or NVML is not there
};

}  // namespace tutti::harness::measure
