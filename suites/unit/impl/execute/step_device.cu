// SPDX-License-Identifier: Apache-2.0
// The step logic as device code: a kernel in which thread r walks the plan of rank r. It is compiled and never run, so
// that a change of impl/execute/step.h or of the plan that a GPU could not follow is found without a GPU.
#include <cstddef>
#include <cstdint>

#include "impl/execute/step.h"

namespace {

/// What a step asks for, in global memory: one phase word per rank, and the input and output of this rank.
struct DeviceMachine {
  std::uint64_t* phases = nullptr;
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::uint64_t operation = 0;
  int rank = 0;

  __device__ bool heard(int peer, std::uint16_t phase) const {
    const bool is_heard = *static_cast<volatile std::uint64_t*>(phases + peer) >= (operation << 16U | phase);
    __threadfence_system();
    return is_heard;
  }
  __device__ void announce(const tutti::PlanOp& op, const tutti::PlanOperand*) const {
    __threadfence_system();
    *static_cast<volatile std::uint64_t*>(phases + rank) = operation << 16U | op.phase;
  }
  __device__ bool channels_ready(const tutti::PlanOp& /*op*/, const tutti::PlanOperand* /*operand*/) const {
    return true;
  }
  __device__ void move(const tutti::PlanOp& op, const tutti::PlanOperand* operand) const {
    const std::byte* source = input + operand[op.destinations].offset;
    for (std::int64_t i = 0; i < op.bytes; ++i) output[operand[0].offset + i] = source[i];
  }
  __device__ void close_channels(const tutti::PlanOp& /*op*/, const tutti::PlanOperand* /*operand*/) const {}
};

}  // namespace

__global__ void walk(const tutti::PlanView* plans, DeviceMachine* machines) {
  const unsigned int rank = blockIdx.x * blockDim.x + threadIdx.x;
  tutti::Lane lane;
  while (!tutti::advance(lane, plans[rank], machines[rank])) {
  }
}
