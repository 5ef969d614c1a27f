// SPDX-License-Identifier: Apache-2.0
// tutti's ranks as thread blocks (--device): of GPUs, or of threads of the host that stand for them. One process has
// all of them on one thread, a share of them on each device.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "harness/backends/tutti/backend.h"
#include "harness/measure/runner.h"
#include "harness/session/systems.h"
#include "harness/verify/cuda_memory.h"
#include "suites/perf/flags.h"
#include "suites/perf/gpu_memory.h"

namespace tutti::perf {

/// Errors: invalid_argument: ranks are in several processes; --lanes without thread blocks.
Status check_blocks(const Settings& settings, int processes);
/// Devices that the ranks of --device are dealt over.
[[nodiscard]] inline int devices_of_blocks(const Settings& settings) {
  return (settings.ranks_here() + settings.ranks_per_gpu - 1) / settings.ranks_per_gpu;
}
/// "4 ranks in 1 process, thread blocks of 2 GPUs"; with --lanes how many a rank has.
[[nodiscard]] std::string blocks_text(const Settings& settings);

class BlockRanks {
 public:
  /// `table`: by which `auto` chooses; null: that which is built in. Errors: those of open_own_ranks and of
  /// open_gpu_memory.
  [[nodiscard]] static Result<std::unique_ptr<BlockRanks>> open(harness::Runner& runner, Domain& domain,
                                                                const Settings& settings,
                                                                std::shared_ptr<const SelectionTable> table);
  [[nodiscard]] harness::OwnBackend& backend() { return *backend_; }
  [[nodiscard]] harness::MemorySource memory();
  /// What was taken of the GPU of which most was: until open returned, and since then. Requires: RunsOn::gpu.
  void add_memory(MemoryUse& memory) const { taken_.add_to(memory); }
  /// What rows say of the ranks.
  [[nodiscard]] const harness::Conditions& conditions() const { return spec_.conditions; }
  [[nodiscard]] const harness::Topology& topology() const { return *topology_; }

 private:
  harness::SessionSpec spec_;
  std::optional<harness::Topology> topology_;                 // of a BlockRanks that open has returned
  std::vector<std::unique_ptr<harness::CudaMemory>> memory_;  // [rank]; empty: buffers lie on the host
  TakenOfGpus taken_;
  std::vector<std::unique_ptr<tutti::Device>> devices_;
  std::unique_ptr<harness::OwnBackend> backend_;
};

}  // namespace tutti::perf
