// SPDX-License-Identifier: Apache-2.0
// A thread block as a Target (impl/execute/target.h). Words that blocks of one GPU share are ordered at the scope of
// the GPU; those that several GPUs or the host look at, at the scope of the system. What was ordered at the one is so
// at the other where a thread has seen both.
#pragma once

#include <cstdint>

namespace tutti::cuda {

class BlockTarget {
 public:
  __device__ int thread() const { return static_cast<int>(threadIdx.x); }
  __device__ int threads() const { return static_cast<int>(blockDim.x); }
  __device__ void barrier() { __syncthreads(); }
  __device__ bool any(bool vote) { return __syncthreads_or(vote) != 0; }

  __device__ static std::uint64_t load_acquire(std::uint64_t* word) {
    std::uint64_t value;
    asm volatile("ld.acquire.gpu.b64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
  }
  __device__ static std::uint64_t load_acquire_afar(std::uint64_t* word) {
    std::uint64_t value;
    asm volatile("ld.acquire.sys.b64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
  }
  __device__ static std::uint64_t load_relaxed(std::uint64_t* word) {
    std::uint64_t value;
    asm volatile("ld.relaxed.sys.b64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
  }
  __device__ static void store_relaxed(std::uint64_t* word, std::uint64_t value) {
    asm volatile("st.relaxed.sys.b64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
  }
  __device__ static void store_release(std::uint64_t* word, std::uint64_t value) {
    asm volatile("st.release.gpu.b64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
  }
  __device__ static void store_release_afar(std::uint64_t* word, std::uint64_t value) {
    asm volatile("st.release.sys.b64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
  }
  /// The words of failures and of the abort are the host's too.
  __device__ static void store_release_to_host(std::uint64_t* word, std::uint64_t value) {
    store_release_afar(word, value);
  }
  __device__ static bool swap_if(std::uint64_t* word, std::uint64_t expected, std::uint64_t value) {
    const auto found = atomicCAS_system(reinterpret_cast<unsigned long long*>(word), expected, value);
    return found == expected;
  }
  __device__ static std::uint64_t now_ns() {
    std::uint64_t now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
  }
  __device__ static void pause() { __nanosleep(20); }
};

}  // namespace tutti::cuda
