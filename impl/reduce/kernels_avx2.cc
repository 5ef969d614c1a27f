// SPDX-License-Identifier: Apache-2.0
// The kernels of kernels_body.h for AVX2 and F16C. impl/CMakeLists.txt gives this file its flags;
// without them the table is absent.
#if defined(__AVX2__) && defined(__F16C__)
#define TUTTI_ISA isa_avx2
#define TUTTI_VECTOR_BYTES 32
#include "impl/reduce/kernels_body.h"

namespace tutti {
namespace {
constexpr KernelTable kAvx2Table = TUTTI_ISA::table("avx2");
}
const KernelTable* const k_kernels_avx2 = &kAvx2Table;
}  // namespace tutti
#else
#include "impl/reduce/kernels_isa.h"

namespace tutti {
const KernelTable* const k_kernels_avx2 = nullptr;
}
#endif
