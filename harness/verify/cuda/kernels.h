// SPDX-License-Identifier: Apache-2.0
// The verifier's kernels by dtype and op, as the host sees them. kernels.cu is compiled once for each dtype.
#pragma once

#include <cstddef>

#include "harness/verify/device_work.h"
#include "impl/types/dtype.h"
#include "impl/types/op.h"

namespace tutti::harness::verify::gpu {

/// Threads of a block, and what the kernels are compiled for.
inline constexpr int kThreads = 256;

/// Addresses for cudaLaunchKernel; a kernel's only argument is a FillWork or a CompareWork.
struct KernelRow {
  static constexpr std::size_t kOps = static_cast<std::size_t>(Op::none) + 1;
  const void* fill[kOps] = {};     ///< [Op]; null where the op does not exist for the dtype
  const void* compare[kOps] = {};  ///< the same
};

/// A row for each dtype of `all`, in its own object file: of the others there are no kernels.
#define TUTTI_ROW(id, type, name) extern const KernelRow k_verify_##id;
TUTTI_DTYPES_OF_ALL(TUTTI_ROW)
#undef TUTTI_ROW

}  // namespace tutti::harness::verify::gpu
