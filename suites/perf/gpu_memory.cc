// SPDX-License-Identifier: Apache-2.0
#include "suites/perf/gpu_memory.h"

#include <algorithm>
#include <cstdlib>

namespace tutti::perf {

const cuda::FoundRuntime& cuda_runtime() {
  static const cuda::FoundRuntime found = cuda::find_runtime(std::getenv);
  return found;
}

std::size_t free_bytes(int device) {
  if (cuda_runtime().runtime == nullptr) return 0;
  std::size_t free = 0, total = 0;
  const cuda::Runtime& cuda = *cuda_runtime().runtime;
  const bool is_known =
      cuda.cudaSetDevice(device) == cuda::kSuccess && cuda.cudaMemGetInfo(&free, &total) == cuda::kSuccess;
  return is_known ? free : 0;
}

void TakenOfGpus::begin(int device) {
  const bool is_known = !free_.empty() && free_.back().device == device;
  if (!is_known) free_.push_back({.device = device, .before = free_bytes(device), .opened = 0});
}

void TakenOfGpus::set_opened() {
  for (Free& one : free_) one.opened = free_bytes(one.device);
}

void TakenOfGpus::add_to(MemoryUse& memory) const {
  memory.of = "GPU";
  const auto taken = [](std::size_t before, std::size_t after) {
    return before > after ? static_cast<double>(before - after) : 0.0;
  };
  for (const Free& one : free_) {
    memory.initial_bytes = std::max(memory.initial_bytes, taken(one.before, one.opened));
    memory.collective_bytes = std::max(memory.collective_bytes, taken(one.opened, free_bytes(one.device)));
  }
}

}  // namespace tutti::perf
