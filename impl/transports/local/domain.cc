// SPDX-License-Identifier: Apache-2.0
#include "impl/transports/local/domain.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <sys/mman.h>

namespace tutti::local {
namespace {

class LocalDomain final : public Domain {
 public:
  LocalDomain(const DomainShape& shape, std::byte* base) : Domain(shape, "local", base) {}
  ~LocalDomain() override { munmap(base(), domain_bytes(shape())); }

  Result<void*> alloc_shared(int /*rank*/, std::size_t bytes) override {
    void* pointer = ::operator new (std::max<std::size_t>(bytes, 1), std::align_val_t{kCacheLine}, std::nothrow);
    if (pointer == nullptr) return error(Code::resource, "no memory for a shared buffer of {} bytes", bytes);
    return pointer;
  }
  void free_shared(int /*rank*/, void* pointer) override { ::operator delete (pointer, std::align_val_t{kCacheLine}); }
  [[nodiscard]] bool is_shared(int, const void*, std::size_t) const override { return true; }
};

}  // namespace

DomainShape shape_for(int ranks) {
  const std::size_t pairs = static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks);
  constexpr std::size_t kPerPair = 8 * 4096;  // reserved, so the budget is address space
  return default_shape(ranks, 0, std::max(std::size_t{64} << 20U, pairs * kPerPair));
}

Result<std::unique_ptr<Domain>> open_domain(const DomainShape& shape) {
  DomainShape without_heap = shape;
  without_heap.heap_bytes = 0;
  const std::size_t bytes = domain_bytes(without_heap);
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    return error(Code::resource, "cannot reserve {} bytes for {} ranks: {}", bytes, shape.ranks, std::strerror(errno));
  }
  return std::unique_ptr<Domain>(new LocalDomain(without_heap, static_cast<std::byte*>(base)));
}

}  // namespace tutti::local
