// SPDX-License-Identifier: Apache-2.0
// From a call as backend.h has it to one of NCCL, or the reason why NCCL has no such call.
#pragma once

#include <string>

#include "harness/backends/backend.h"
#include "harness/backends/nccl/calls.h"

namespace tutti::backend_nccl {

/// What this NCCL can do; 0: not known yet, so anything.
struct Abilities {
  int version = 0;
  int capability = 0;  ///< of all ranks' GPUs the least, as 90 for 9.0
};

/// Fills `prepared`, whose group is set, unless the world is not open. Returns why NCCL cannot do it, or nothing. Calls
/// neither NCCL nor CUDA.
[[nodiscard]] std::string translate(const TuttiBackendCall& call, const Abilities& abilities, Prepared& prepared);

}  // namespace tutti::backend_nccl
