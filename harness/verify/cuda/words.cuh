// SPDX-License-Identifier: Apache-2.0
// What threads of a GPU write together (device_text.h), and which thread one is.
#pragma once

#include <cstdint>

#include "harness/verify/device_text.h"

namespace tutti::harness::verify::gpu {

struct GpuWords {
  using Word = unsigned long long;
  __device__ static void add(std::uint64_t* word, std::uint64_t value) { atomicAdd(reinterpret_cast<Word*>(word), value); }
  __device__ static void least(std::uint64_t* word, std::uint64_t value) {
    atomicMin(reinterpret_cast<Word*>(word), value);
  }
  __device__ static void most(std::uint64_t* word, std::uint64_t value) {
    atomicMax(reinterpret_cast<Word*>(word), value);
  }
};

__device__ inline DeviceThread this_thread() {
  return {.team = static_cast<int>(blockIdx.x),
          .teams = static_cast<int>(gridDim.x),
          .thread = static_cast<int>(threadIdx.x),
          .threads = static_cast<int>(blockDim.x)};
}

}  // namespace tutti::harness::verify::gpu
