// SPDX-License-Identifier: Apache-2.0
// The kernels of kernels_body.h for AVX-512 (F, BW, DQ, VL) and F16C. impl/CMakeLists.txt gives this file its flags;
// without them the table is absent.
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__) && defined(__F16C__)
#define TUTTI_ISA isa_avx512
#define TUTTI_VECTOR_BYTES 64
#include "impl/reduce/kernels_body.h"

namespace tutti {
namespace {
constexpr KernelTable kAvx512Table = TUTTI_ISA::table("avx512");
}
const KernelTable* const k_kernels_avx512 = &kAvx512Table;
}  // namespace tutti
#else
#include "impl/reduce/kernels_isa.h"

namespace tutti {
const KernelTable* const k_kernels_avx512 = nullptr;
}
#endif
