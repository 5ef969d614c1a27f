// SPDX-License-Identifier: Apache-2.0
// NCCL on GPUs: when the programs measure it, which GPU a rank has, and what flags mean there. A process has all its
// ranks on one thread, which posts each operation for them as a group.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/backends/reference.h"
#include "harness/measure/runner.h"
#include "harness/verify/cuda_memory.h"
#include "impl/execute/device_world.h"
#include "suites/perf/blocks.h"
#include "suites/perf/flags.h"
#include "suites/perf/gpu_memory.h"
#include "suites/perf/text.h"

namespace tutti::perf {

inline constexpr const char* kNccl = "nccl";
inline constexpr int kWindows = 2;  ///< of -R

/// Settles settings.backend: NCCL where nobody chose and where there are a GPU and NCCL. Then what the flags of GPUs
/// mean: notes, or refusals. Errors: unavailable with the reason where nccl was asked for; invalid_argument for a flag.
Status settle_backend(Settings& settings, const Program& program);

/// Whether NCCL has the collective in place: not where messages would arrive in what is still to be sent.
[[nodiscard]] constexpr bool has_in_place(Collective collective) {
  return collective != Collective::all_to_all && collective != Collective::all_to_all_v &&
         collective != Collective::sendrecv;
}

/// Of NCCL_TESTS_DEVICE. Errors: invalid_argument: not a GPU's number, or one for several processes or thread blocks.
Status take_first_device(Settings& settings, int processes);
[[nodiscard]] inline int device_of(const Settings& settings, int rank) {
  if (settings.device) return device_dealt(rank, settings.ranks_here(), devices_of_blocks(settings));
  return settings.first_device + rank / settings.ranks_per_gpu;
}
/// Whether buffers lie in the memory of GPUs.
[[nodiscard]] inline bool has_gpu_memory(const Settings& settings) {
  return settings.backend == kNccl || settings.device == harness::RunsOn::gpu;
}
/// The GPU of each of `ranks` ranks of this runner from `first` on. Errors: unavailable: there are not so many.
[[nodiscard]] Result<std::vector<int>> devices_of(const Settings& settings, int first, int ranks);
/// Fills number, bus and model in.
void describe_device(Device& device, int number);
/// "NCCL 2.28.9"
[[nodiscard]] std::string nccl_text();
/// As records have it: a JSON object with the version, the libraries' paths and CUDA's versions; empty where it does
/// not say.
[[nodiscard]] std::string nccl_description();
/// 22809 is 2.28.9; 0 where it does not say.
[[nodiscard]] int nccl_version();
/// How long NCCL waits for ranks that do not come: as long as -T, unless the environment says otherwise.
void set_patience(const Settings& settings);
/// The largest size not above -e of which the buffers of a GPU's ranks fit what is free there; `needs` are the bytes of
/// one rank at -e.
[[nodiscard]] std::int64_t most_bytes_on_gpu(const Settings& settings, double needs, int device);

/// NCCL as the ranks of one runner have it open.
class NcclRanks {
 public:
  struct Options {
    const std::vector<int>& devices;  ///< of this runner's ranks
    int first_rank = 0;               ///< of this runner's, in the world
    int registration = 0;             ///< -R
    bool has_groups = false;          ///< the runner's is the one that its ranks are in
  };
  /// All runners call it. Errors: those of the backend and of CudaMemory::open.
  [[nodiscard]] static Result<std::unique_ptr<NcclRanks>> open(harness::Runner& runner, const Options& options);
  [[nodiscard]] harness::ReferenceBackend& backend() { return *reference_; }
  [[nodiscard]] harness::MemorySource memory();
  /// What NCCL and CUDA took of the GPU that they took most of: until open returned, and since then.
  void add_memory(MemoryUse& memory) const { taken_.add_to(memory); }
  Status close() { return reference_->close(); }

 private:
  std::vector<std::unique_ptr<harness::CudaMemory>> memory_;  // [rank of this runner]
  std::unique_ptr<harness::ReferenceBackend> reference_;
  TakenOfGpus taken_;
  bool has_windows_ = false;  // buffers lie in NCCL's own memory
};

}  // namespace tutti::perf
