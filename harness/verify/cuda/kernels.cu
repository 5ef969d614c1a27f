// SPDX-License-Identifier: Apache-2.0
// The verifier's kernels of one dtype, TUTTI_KERNEL_DTYPE. The text is that of the host's teams.
#include "harness/verify/cuda/kernels.h"
#include "harness/verify/cuda/words.cuh"

namespace tutti::harness::verify::gpu {
namespace {

template <class T, Op op>
__global__ void __launch_bounds__(kThreads) fill(const __grid_constant__ FillWork work) {
  fill_elements<T, op>(work, this_thread());
}

/// With so many registers as leave room for kBlocks blocks. Where nothing is said, ptxas keeps to fewer and spills some.
constexpr int kBlocks = 4;

template <class T, Op op>
__global__ void __launch_bounds__(kThreads, kBlocks) compare(const __grid_constant__ CompareWork work) {
  compare_elements<T, op, GpuWords>(work, this_thread());
}

template <class T, Op op>
void set(KernelRow& row) {
  row.fill[static_cast<std::size_t>(op)] = reinterpret_cast<const void*>(&fill<T, op>);
  row.compare[static_cast<std::size_t>(op)] = reinterpret_cast<const void*>(&compare<T, op>);
}

template <class T>
KernelRow row_of() {
  KernelRow row;
  set<T, Op::none>(row);
  set<T, Op::sum>(row);
  set<T, Op::prod>(row);
  set<T, Op::min>(row);
  set<T, Op::max>(row);
  set<T, Op::avg>(row);
  set<T, Op::premul_sum>(row);
  if constexpr (std::is_integral_v<T>) {
    set<T, Op::band>(row);
    set<T, Op::bor>(row);
    set<T, Op::bxor>(row);
  }
  return row;
}

#define TUTTI_JOIN_(a, b) a##b
#define TUTTI_JOIN(a, b) TUTTI_JOIN_(a, b)
#define TUTTI_ROW(id, type, name) using type_of_##id = type;
TUTTI_DTYPES(TUTTI_ROW)
#undef TUTTI_ROW

}  // namespace

const KernelRow TUTTI_JOIN(k_verify_, TUTTI_KERNEL_DTYPE) = row_of<TUTTI_JOIN(type_of_, TUTTI_KERNEL_DTYPE)>();

}  // namespace tutti::harness::verify::gpu
