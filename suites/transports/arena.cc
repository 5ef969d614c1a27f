// SPDX-License-Identifier: Apache-2.0
// A transport that is a shared object: what it takes to write one, and the one that tests load. Its memory is one
// arena, its own in one process and the launcher's where each rank has a process. Heaps lie in it, so references are
// offsets for ranks of both kinds.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "impl/transports/build.h"
#include "impl/transports/transport.h"

namespace tutti {
namespace {

constexpr const char* kName = TUTTI_ARENA_NAME;
#ifdef TUTTI_ARENA_IS_OLD
constexpr std::uint64_t kNumber = 77;
constexpr const char* kBuiltFor = "tutti 0.0.9";
#else
constexpr std::uint64_t kNumber = kTransportNumber;
constexpr const char* kBuiltFor = kTransportBuild;
#endif

/// Of ranks in one process: the others take a share of the same object.
class ArenaGroup final : public GroupMemory, public std::enable_shared_from_this<ArenaGroup> {
 public:
  explicit ArenaGroup(std::byte* base) : GroupMemory(base) {}
  ~ArenaGroup() override { ::operator delete(base(), std::align_val_t(kCacheLine)); }
  [[nodiscard]] Offer offer() const override { return {.words = {reinterpret_cast<std::uintptr_t>(this), 0}}; }
};

class ArenaDomain final : public Domain {
 public:
  ArenaDomain(const DomainShape& shape, std::byte* base, bool is_own)
      : Domain(shape, kName, base), is_own_(is_own), heaps_(static_cast<std::size_t>(shape.ranks)) {}
  ~ArenaDomain() override { munmap(base(), domain_bytes(shape())); }

  /// From the heap's rest, which is the whole of it again when nothing is in use.
  Result<void*> alloc_shared(int rank, std::size_t bytes) override {
    Heap& heap = heaps_[static_cast<std::size_t>(rank)];
    const std::size_t rest = shape().heap_bytes - heap.used;
    if (bytes > rest) return error(Code::resource, "no room for {} bytes: the heap has {}", bytes, rest);
    void* const pointer = seat(rank).heap + heap.used;
    heap.used += std::min(rest, std::max(kCacheLine, (bytes + kCacheLine - 1) / kCacheLine * kCacheLine));
    heap.given.push_back(pointer);
    return pointer;
  }
  void free_shared(int rank, void* pointer) override {
    Heap& heap = heaps_[static_cast<std::size_t>(rank)];
    std::erase(heap.given, pointer);
    if (heap.given.empty()) heap.used = 0;
  }
  [[nodiscard]] bool is_shared(int rank, const void* pointer, std::size_t bytes) const override {
    const auto offset = reinterpret_cast<std::uintptr_t>(pointer) - reinterpret_cast<std::uintptr_t>(seat(rank).heap);
    const std::size_t used = heaps_[static_cast<std::size_t>(rank)].used;
    return offset <= used && bytes <= used - offset;
  }
  Result<std::shared_ptr<GroupMemory>> make_group_memory(std::size_t bytes) override {
    if (!is_own_) return error(Code::unavailable, "transport {} has no groups of processes", kName);
    void* const memory = ::operator new(bytes, std::align_val_t(kCacheLine), std::nothrow);
    if (memory == nullptr) return error(Code::resource, "no memory for a group of {} bytes", bytes);
    std::memset(memory, 0, bytes);
    return std::shared_ptr<GroupMemory>(std::make_shared<ArenaGroup>(static_cast<std::byte*>(memory)));
  }
  Result<std::shared_ptr<GroupMemory>> take_group_memory(const GroupMemory::Offer& offer, std::size_t) override {
    return std::shared_ptr<GroupMemory>(reinterpret_cast<ArenaGroup*>(offer.words[0])->shared_from_this());
  }

 private:
  struct Heap {
    std::size_t used = 0;
    std::vector<void*> given = {};
  };
  bool is_own_;
  std::vector<Heap> heaps_;
};

Result<std::unique_ptr<Domain>> open_arena(const DomainShape& shape, int memory) {
  const bool is_own = memory < 0;
  const int flags = is_own ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
  void* const base = mmap(nullptr, domain_bytes(shape), PROT_READ | PROT_WRITE, flags, memory, 0);
  if (base == MAP_FAILED) {
    return error(Code::resource, "cannot map {} bytes: {}", domain_bytes(shape), std::strerror(errno));
  }
  return std::unique_ptr<Domain>(new ArenaDomain(shape, static_cast<std::byte*>(base), is_own));
}

constexpr Transport kRow{
    .number = kNumber,
    .built_for = kBuiltFor,
    .name = kName,
    .note = "a test's own memory",
    .serves = bit_of(RanksIn::one_process) | bit_of(RanksIn::own_processes),
    .addresses_peers = true,
    .spans_hosts = false,
    .shape = [](int ranks, int, std::size_t heap_bytes) { return default_shape(ranks, heap_bytes); },
    .shared_bytes = [](const DomainShape& shape,
                       RanksIn where) { return where == RanksIn::own_processes ? domain_bytes(shape) : 0; },
    .open = [](const DomainShape& shape, const Opening& opening) { return open_arena(shape, opening.memory); },
};

}  // namespace
}  // namespace tutti

extern "C" __attribute__((visibility("default"))) const tutti::Transport* tutti_transport() { return &tutti::kRow; }
