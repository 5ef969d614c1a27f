// SPDX-License-Identifier: Apache-2.0
// Kernels that do what a real one does, and something wrong besides. A kernel has no state, so what these need is kept
// per thread, from the last call of either function on.
#pragma once

#include "harness/floors.h"
#include "impl/reduce/kernels.h"

namespace tutti::harness::faults {

/// `real`, but for no sources at all, which no plan asks for: then bit `bit` of each destination is flipped.
[[nodiscard]] Kernel flipping_kernel(Kernel real, unsigned bit);
/// `real`, whose reductions keep half of the significant bits: floats lose the lower half of them, integers wrap to
/// half their width.
[[nodiscard]] Kernel narrowing_kernel(Kernel real, Dtype dtype);

}  // namespace tutti::harness::faults
