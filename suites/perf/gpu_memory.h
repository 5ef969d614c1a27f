// SPDX-License-Identifier: Apache-2.0
// What is taken of the memory of GPUs, as CUDA tells it.
#pragma once

#include <cstddef>
#include <vector>

#include "impl/cuda/runtime.h"
#include "suites/perf/text.h"

namespace tutti::perf {

/// CUDA as this process has it; looked for once.
[[nodiscard]] const cuda::FoundRuntime& cuda_runtime();
/// 0 where CUDA does not say.
[[nodiscard]] std::size_t free_bytes(int device);

/// Of the GPUs that ranks of this process have.
class TakenOfGpus {
 public:
  /// Before anything is taken of it. A device that several ranks have counts once; theirs follow each other.
  void begin(int device);
  /// Before the first buffer.
  void set_opened();
  /// Of the GPU of which most was taken: until it was opened, and since then.
  void add_to(MemoryUse& memory) const;

 private:
  struct Free {
    int device;
    std::size_t before, opened;
  };
  std::vector<Free> free_;  // bytes of each GPU
};

}  // namespace tutti::perf
