// SPDX-License-Identifier: Apache-2.0
// Chooses the instruction set, once, by what the CPU and the operating system support.
#include "impl/reduce/kernels.h"

#include <array>
#include <cstddef>
#include <span>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "impl/reduce/kernels_isa.h"

namespace tutti {
namespace {

#ifdef __x86_64__
/// Asked of the CPU itself: not every compiler's builtin knows the name. Requires AVX of the operating system too.
bool cpu_has_f16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

bool cpu_has_avx2() {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx2") && cpu_has_f16c();
#else
  return false;
#endif
}

bool cpu_has_avx512() {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && cpu_has_f16c();
#else
  return false;
#endif
}

struct Runnable {
  std::array<const KernelTable*, 3> tables{};
  std::size_t count = 0;

  Runnable() {
    if (k_kernels_avx512 != nullptr && cpu_has_avx512()) tables[count++] = k_kernels_avx512;
    if (k_kernels_avx2 != nullptr && cpu_has_avx2()) tables[count++] = k_kernels_avx2;
    tables[count++] = k_kernels_baseline;
  }
};

}  // namespace

std::span<const KernelTable* const> runnable_kernels() {
  static const Runnable runnable;
  return {runnable.tables.data(), runnable.count};
}

Kernel kernel_for_isa(const KernelTable& table, Dtype dtype, Op op) {
  TUTTI_ASSERT(op_exists(op, dtype), "{} of {}", to_string(op), to_string(dtype));
  return op == Op::none ? table.copy : table.reduce[static_cast<std::size_t>(dtype)][static_cast<std::size_t>(op)];
}

Kernel kernel_for(Dtype dtype, Op op) { return kernel_for_isa(*runnable_kernels().front(), dtype, op); }

SmallKernel small_kernel_for(Dtype dtype, Op op) {
  return runnable_kernels().front()->reduce_small[static_cast<std::size_t>(dtype)][static_cast<std::size_t>(op)];
}

const char* kernel_isa() { return runnable_kernels().front()->isa; }

}  // namespace tutti
