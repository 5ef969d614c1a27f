// SPDX-License-Identifier: Apache-2.0
// The kernels by dtype and op, as the host sees them. kernels.cu is compiled once for each dtype.
#pragma once

#include <cstddef>

#include "impl/types/dtype.h"
#include "impl/types/op.h"

namespace tutti::cuda {

/// Threads of a block: what the kernels are compiled for.
inline constexpr int kMostThreads = 512;

/// The kernels of a dtype: addresses for cudaLaunchCooperativeKernel, whose arguments are a DeviceWorld and a
/// DeviceWork.
struct KernelRow {
  static constexpr std::size_t kOps = static_cast<std::size_t>(Op::none) + 1;
  const void* of_op[kOps] = {};  ///< [Op]; null where the op does not exist for the dtype
};

/// A row for each dtype of `all`, in its own object file: of the others there are no kernels.
#define TUTTI_ROW(id, type, name) extern const KernelRow k_kernels_##id;
TUTTI_DTYPES_OF_ALL(TUTTI_ROW)
#undef TUTTI_ROW

/// Without kernels where there are none of the dtype.
[[nodiscard]] const KernelRow& kernels_of(Dtype dtype);

}  // namespace tutti::cuda
