// SPDX-License-Identifier: Apache-2.0
// The kernels of one dtype, TUTTI_KERNEL_DTYPE: the ranks of a launch as ranges of thread blocks. All blocks of a
// launch are resident (it is cooperative), since each waits for others. The text is that of the host's teams.
#include "impl/device/cuda/kernels.h"
#include "impl/device/cuda/target.cuh"
#include "impl/execute/device_move.h"

namespace tutti::cuda {
namespace {

template <class T, Op op>
struct Elements {
  __device__ void operator()(const DeviceMove& move, int thread, int threads) const {
    move_elements<T, op>(move, thread, threads);
  }
};

/// Blocks are numbered by lane first: a lane waits for the same lane of the others only.
template <class T, Op op>
__global__ void __launch_bounds__(kMostThreads, 1)
    collective(const __grid_constant__ DeviceWorld world, const __grid_constant__ DeviceWork work) {
  extern __shared__ std::byte* addresses[];
  const int team = static_cast<int>(blockIdx.x);
  const int party = team % work.parties;
  const int rank = work.ranks == nullptr ? party : work.ranks[party];
  BlockTarget target;
  const Elements<T, op> reduce;
  run_lane<BlockTarget, Elements<T, op>>(
      world, work, party, {.rank = rank, .lane = team / work.parties, .addresses = addresses}, target, reduce);
}

template <class T, Op op>
const void* kernel() {
  return reinterpret_cast<const void*>(&collective<T, op>);
}

template <class T>
KernelRow row_of() {
  KernelRow row;
  const auto set = [&row](Op op, const void* address) { row.of_op[static_cast<std::size_t>(op)] = address; };
  set(Op::none, kernel<T, Op::none>());
  set(Op::sum, kernel<T, Op::sum>());
  set(Op::prod, kernel<T, Op::prod>());
  set(Op::min, kernel<T, Op::min>());
  set(Op::max, kernel<T, Op::max>());
  set(Op::avg, kernel<T, Op::avg>());
  set(Op::premul_sum, kernel<T, Op::premul_sum>());
  if constexpr (std::is_integral_v<T>) {
    set(Op::band, kernel<T, Op::band>());
    set(Op::bor, kernel<T, Op::bor>());
    set(Op::bxor, kernel<T, Op::bxor>());
  }
  return row;
}

#define TUTTI_JOIN_(a, b) a##b
#define TUTTI_JOIN(a, b) TUTTI_JOIN_(a, b)
#define TUTTI_ROW(id, type, name) using type_of_##id = type;
TUTTI_DTYPES(TUTTI_ROW)
#undef TUTTI_ROW

}  // namespace

const KernelRow TUTTI_JOIN(k_kernels_, TUTTI_KERNEL_DTYPE) = row_of<TUTTI_JOIN(type_of_, TUTTI_KERNEL_DTYPE)>();

}  // namespace tutti::cuda
