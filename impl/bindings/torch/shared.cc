// SPDX-License-Identifier: Apache-2.0
#include "impl/bindings/torch/shared.h"

#include <c10/core/CPUAllocator.h>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <torch/version.h>

#include <fmt/format.h>

#include "impl/bindings/torch/failure.h"

namespace tutti::bindings {
namespace {

// Where tensors are allocated. A deleter has nothing but the address.
embed::Arena* arena_of_torch = nullptr;
c10::DeleterFnPtr deleter_of_others = nullptr;

class SharedAllocator final : public c10::Allocator {
 public:
  explicit SharedAllocator(c10::Allocator& others) : others_(others) {}

#if TORCH_VERSION_MAJOR >= 2
  c10::DataPtr allocate(std::size_t bytes) override { return make(bytes); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
#else
  c10::DataPtr allocate(std::size_t bytes) const override { return make(bytes); }
#endif
  c10::DeleterFnPtr raw_deleter() const override { return &release; }

 private:
  c10::DataPtr make(std::size_t bytes) const {
    void* const memory = bytes >= kLeastShared ? arena_of_torch->allocate(bytes) : nullptr;
    if (memory == nullptr) {
      c10::DataPtr other = others_.allocate(bytes);
      (void)other.compare_exchange_deleter(deleter_of_others, &release);
      return other;
    }
    c10::profiledCPUMemoryReporter().New(memory, bytes);
    return {memory, memory, &release, at::Device(at::DeviceType::CPU)};
  }
  static void release(void* memory) {
    if (memory == nullptr) return;
    embed::Arena* arena = arena_of_torch;
    while (arena != nullptr && !arena->holds(memory, 1)) arena = arena->inherited();
    if (arena == nullptr) return deleter_of_others(memory);
    c10::profiledCPUMemoryReporter().Delete(memory);
    arena->release(memory);
  }

  c10::Allocator& others_;
};

embed::Arena* arena_of_process() {
  const Result<embed::Arena*> arena = embed::Arena::of_process();
  check("TUTTI_TORCH_SHARED", arena.status());
  return arena.value();
}

}  // namespace

void share_memory_if_asked() {
  const char* const asked = std::getenv("TUTTI_TORCH_SHARED");
  const std::string_view value = asked == nullptr ? "" : asked;
  if (value.empty() || value == "0" || arena_of_torch != nullptr) return;
  if (value != "1") {
    throw std::invalid_argument(
        fmt::format("TUTTI_TORCH_SHARED: '{}' is neither 0 nor 1: did you mean 1, for memory that ranks share?", value));
  }
  c10::Allocator& others = *c10::GetCPUAllocator();
  if (others.raw_deleter() == nullptr) {
    throw std::runtime_error("TUTTI_TORCH_SHARED: torch has an allocator of another extension: unset the variable");
  }
  arena_of_torch = arena_of_process();
  deleter_of_others = others.raw_deleter();
  // The priority of torch's own is 0. It is never freed: tensors may outlive static objects.
  c10::SetCPUAllocator(new SharedAllocator(others), 1);
}

const embed::Arena* shared_memory() {
  if (arena_of_torch != nullptr) arena_of_torch = arena_of_process();
  return arena_of_torch;
}

}  // namespace tutti::bindings
