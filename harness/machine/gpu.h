// SPDX-License-Identifier: Apache-2.0
// The GPUs of this host as NVIDIA's management library (NVML) sees them: what slows them down, and who else uses them.
// It is loaded when it is asked for, and comes with the driver.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::harness::machine {

/// One GPU now. What NVML does not tell is 0, or empty.
struct GpuSeen {
  std::string name;
  std::string bus;         ///< "0000:17:00.0"
  unsigned clock_mhz = 0;  ///< of its multiprocessors; lower while it idles
  unsigned most_clock_mhz = 0;
  std::uint64_t throttling = 0;     ///< reasons, as NVML numbers them
  std::uint64_t ecc_errors = 0;     ///< that could not be corrected, since the driver was loaded
  std::vector<unsigned> processes;  ///< that compute on it
};

struct GpusSeen {
  std::vector<GpuSeen> gpus;
  std::string why_not;  ///< where none could be asked: one sentence; empty: they were
};
/// Of all, by NVML's number.
[[nodiscard]] GpusSeen look_at_gpus();
/// Of the one that CUDA gives this number.
[[nodiscard]] GpusSeen look_at_gpu(int device);
/// Why CUDA has no GPU for this process, and what to do about it; empty: it has.
[[nodiscard]] std::string why_no_cuda();
/// Its name by CUDA's runtime; empty where there is none.
[[nodiscard]] std::string gpu_model(int device);

/// What of these reasons slows down what is measured, in words: "power", "heat"; empty: nothing.
[[nodiscard]] std::string throttling_text(std::uint64_t reasons);

/// What may have disturbed what ran on the GPU between two looks, by `own` process: words of `disturbed`, of which each
/// begins with gpu_.
[[nodiscard]] std::string gpu_disturbances(const GpuSeen& before, const GpuSeen& after, unsigned own,
                                           int ranks_of_gpu = 1);

}  // namespace tutti::harness::machine
