// SPDX-License-Identifier: Apache-2.0
// Inside impl/reduce: one table of kernels per instruction set. Each is filled by its own translation unit, compiled
// with that instruction set's flags from the one text in kernels_body.h. A build without those flags leaves the pointer
// null.
#pragma once

#include <span>

#include "impl/reduce/kernels.h"
#include "impl/types/dtype.h"
#include "impl/types/op.h"

namespace tutti {

#define TUTTI_ROW(...) +1
inline constexpr int kDtypes = 0 TUTTI_DTYPES(TUTTI_ROW);
inline constexpr int kOps = 0 TUTTI_OPS(TUTTI_ROW);
#undef TUTTI_ROW

struct KernelTable {
  const char* isa;               ///< "avx512", "avx2" or "baseline"
  Kernel copy;                   ///< Op::none, any dtype
  Kernel reduce[kDtypes][kOps];  ///< by dtype and op; null where op_exists says no
  SmallKernel reduce_small[kDtypes][kOps];
};

extern const KernelTable* const k_kernels_baseline;  ///< never null
extern const KernelTable* const k_kernels_avx2;
extern const KernelTable* const k_kernels_avx512;

/// The tables that this build has and this CPU runs, best first; the baseline is always the last.
[[nodiscard]] std::span<const KernelTable* const> runnable_kernels();

/// As `kernel_for`, from one table.
[[nodiscard]] Kernel kernel_for_isa(const KernelTable& table, Dtype dtype, Op op);

}  // namespace tutti
