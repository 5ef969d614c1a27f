// SPDX-License-Identifier: Apache-2.0
// Kernels that do what a real one does, and something wrong besides.
#pragma once

#include <memory>

#include "harness/floors.h"
#include "impl/reduce/kernels.h"

namespace tutti::harness::faults {

/// A kernel, and the context that it needs in its arguments.
struct BrokenKernel {
  Kernel kernel = nullptr;
  std::shared_ptr<const void> context;
};

/// `real`, but for no sources at all, which no plan asks for: then bit `bit` of each destination is flipped.
[[nodiscard]] BrokenKernel flipping_kernel(Kernel real, unsigned bit);
/// `real`, whose reductions keep half of the significant bits: floats lose the lower half of them, integers wrap to
/// half their width.
[[nodiscard]] BrokenKernel narrowing_kernel(Kernel real, Dtype dtype);

}  // namespace tutti::harness::faults
