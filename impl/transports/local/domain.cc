// SPDX-License-Identifier: Apache-2.0
#include "impl/transports/local/domain.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <new>
#include <sys/mman.h>
#include <unordered_set>
#include <vector>

#include "impl/transports/build.h"

namespace tutti::local {
namespace {

constexpr const char* kName = "local";

/// Reserved, not committed. Errors: resource with the numbers.
Result<std::byte*> reserve(std::size_t bytes) {
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    return error(Code::resource, "cannot reserve {} bytes of memory: {}", bytes, std::strerror(errno));
  }
  return static_cast<std::byte*>(base);
}

/// The others take a share of the same object.
class LocalGroupMemory final : public GroupMemory, public std::enable_shared_from_this<LocalGroupMemory> {
 public:
  LocalGroupMemory(std::byte* base, std::size_t bytes) : GroupMemory(base), bytes_(bytes) {}
  ~LocalGroupMemory() override { munmap(base(), bytes_); }
  [[nodiscard]] Offer offer() const override { return {.words = {reinterpret_cast<std::uintptr_t>(this), 0}}; }

 private:
  std::size_t bytes_;
};

class LocalDomain final : public Domain {
 public:
  LocalDomain(const DomainShape& shape, std::byte* base)
      : Domain(shape, kName, base), buffers_(static_cast<std::size_t>(shape.ranks)) {}
  ~LocalDomain() override { munmap(base(), domain_bytes(shape())); }

  [[nodiscard]] bool is_in_one_process() const override { return true; }

  Result<void*> alloc_shared(int rank, std::size_t bytes) override {
    // No object is larger; rounded up to lines, a larger size could wrap to a small one.
    const bool is_possible = bytes <= static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max());
    void* pointer = is_possible ? ::operator new(std::max<std::size_t>(bytes, 1), kAlignment, std::nothrow) : nullptr;
    if (pointer == nullptr) return error(Code::resource, "no memory for a shared buffer of {} bytes", bytes);
    buffers_[static_cast<std::size_t>(rank)].insert(pointer);
    return pointer;
  }
  void free_shared(int rank, void* pointer) override {
    if (buffers_[static_cast<std::size_t>(rank)].erase(pointer) == 1) ::operator delete(pointer, kAlignment);
  }
  /// Any memory is, that does not go beyond the last address.
  [[nodiscard]] bool is_shared(int /*rank*/, const void* pointer, std::size_t bytes) const override {
    return bytes <= std::numeric_limits<std::uintptr_t>::max() - reinterpret_cast<std::uintptr_t>(pointer);
  }
  Result<std::shared_ptr<GroupMemory>> make_group_memory(std::size_t bytes) override {
    TUTTI_ASSIGN_OR_RETURN(std::byte* const base, reserve(bytes));
    return std::shared_ptr<GroupMemory>(std::make_shared<LocalGroupMemory>(base, bytes));
  }
  Result<std::shared_ptr<GroupMemory>> take_group_memory(const GroupMemory::Offer& offer,
                                                         std::size_t /*bytes*/) override {
    return std::shared_ptr<GroupMemory>(
        reinterpret_cast<LocalGroupMemory*>(static_cast<std::uintptr_t>(offer.words[0]))->shared_from_this());
  }

 private:
  static constexpr std::align_val_t kAlignment{kCacheLine};
  std::vector<std::unordered_set<void*>> buffers_;  // [rank]: what it allocated; only that rank touches it
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
  const Result<std::byte*> base = reserve(bytes);
  if (!base.is_ok()) return error(Code::resource, "{} ranks: {}", shape.ranks, base.status().message());
  return std::unique_ptr<Domain>(new LocalDomain(without_heap, base.value()));
}

const Transport& transport() {
  static constexpr Transport kRow{
      .number = kTransportNumber,
      .built_for = kTransportBuild,
      .name = kName,
      .note = "ranks of one process: threads, tasks, blocks",
      .serves = bit_of(RanksIn::one_process),
      .addresses_peers = true,
      .spans_hosts = false,
      .shape = [](int ranks, int, std::size_t) { return shape_for(ranks); },
      .shared_bytes = [](const DomainShape&, RanksIn) { return std::size_t{0}; },
      .open = [](const DomainShape& shape, const Opening&) { return open_domain(shape); },
  };
  return kRow;
}

}  // namespace tutti::local
