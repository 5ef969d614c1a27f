// SPDX-License-Identifier: Apache-2.0
// The kernels of kernels_body.h for what every CPU of this architecture runs (x86-64: SSE2).
#define TUTTI_ISA isa_baseline
#define TUTTI_VECTOR_BYTES 16
#include "impl/reduce/kernels_body.h"

namespace tutti {
namespace {
constexpr KernelTable kBaselineTable = TUTTI_ISA::table("baseline");
}
const KernelTable* const k_kernels_baseline = &kBaselineTable;
}  // namespace tutti
