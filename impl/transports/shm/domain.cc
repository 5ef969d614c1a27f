// SPDX-License-Identifier: Apache-2.0
#include "impl/transports/shm/domain.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <optional>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "impl/transports/build.h"
#include "impl/transports/shared_memory.h"

namespace tutti::shm {
namespace {

constexpr const char* kName = "shm";

/// First fit over one rank's heap; only the owner allocates from it.
class Heap {
 public:
  explicit Heap(std::size_t bytes) { free_[0] = bytes; }

  Result<std::size_t> allocate(std::size_t bytes) {
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      if (it->second < bytes) continue;  // so that rounding up cannot wrap
      const std::size_t size = std::max(kCacheLine, (bytes + kCacheLine - 1) / kCacheLine * kCacheLine);
      if (it->second < size) continue;
      const auto [offset, available] = *it;
      free_.erase(it);
      if (available > size) free_[offset + size] = available - size;
      used_[offset] = size;
      return offset;
    }
    std::size_t largest = 0;
    for (const auto& [offset, available] : free_) largest = std::max(largest, available);
    return error(Code::resource, "no room for a shared buffer of {} bytes: the largest free part of the heap has {}",
                 bytes, largest);
  }

  /// Nothing where no buffer begins at `offset`.
  void release(std::size_t offset) {
    const auto used = used_.find(offset);
    if (used == used_.end()) return;
    auto here = free_.emplace(offset, used->second).first;
    used_.erase(used);
    const auto next = std::next(here);
    if (next != free_.end() && here->first + here->second == next->first) {
      here->second += next->second;
      free_.erase(next);
    }
    if (here != free_.begin()) {
      const auto previous = std::prev(here);
      if (previous->first + previous->second == here->first) {
        previous->second += here->second;
        free_.erase(here);
      }
    }
  }

  [[nodiscard]] bool holds(std::size_t offset, std::size_t bytes) const {
    auto after = used_.upper_bound(offset);
    if (after == used_.begin()) return false;
    --after;
    const std::size_t end = after->first + after->second;
    return offset <= end && bytes <= end - offset;
  }

 private:
  std::map<std::size_t, std::size_t> free_;  // offset -> bytes
  std::map<std::size_t, std::size_t> used_;
};

Result<std::byte*> map(int fd, std::size_t bytes, std::size_t offset = 0) {
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (base == MAP_FAILED)
    return error(Code::resource, "cannot map {} bytes of shared memory: {}", bytes, std::strerror(errno));
  return static_cast<std::byte*>(base);
}

/// A memfd of its own. The rank that makes it keeps the descriptor until the others have opened it through /proc. They
/// are processes of one user: so there is no socket to listen at, no name to collide and nothing to clean up. A pool in
/// the job's segment would have to be as large as all groups that may ever exist at once.
class ShmGroupMemory final : public GroupMemory {
 public:
  ShmGroupMemory(std::byte* base, std::size_t bytes, int fd) : GroupMemory(base), bytes_(bytes), fd_(fd) {}
  ~ShmGroupMemory() override {
    withdraw();
    munmap(base(), bytes_);
  }
  [[nodiscard]] Offer offer() const override {
    return {.words = {static_cast<std::uint64_t>(getpid()), static_cast<std::uint64_t>(fd_)}};
  }
  void withdraw() override {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  std::size_t bytes_;
  int fd_;
};

/// What this process has had allocated of memory that grows.
class Growth {
 public:
  explicit Growth(const Domain& domain)
      : domain_(domain),
        scratch_(static_cast<std::size_t>(domain.shape().ranks)),
        slices_(scratch_.size() * scratch_.size()),
        pairs_(slices_.size()) {}

  Status allocate(const MemoryNeeds& needs) {
    const DomainShape& shape = domain_.shape();
    std::vector<MappedPart> extents;
    const std::size_t scratch = whole_pages(needs.scratch_bytes, shape.scratch_bytes);
    for (const int rank : needs.scratch_of) {
      if (has(scratch_[static_cast<std::size_t>(rank)], scratch)) continue;
      for (int generation = 0; generation < shape.generations; ++generation) {
        std::byte* const begin =
            domain_.seat(rank).scratch + static_cast<std::size_t>(generation) * scratch_stride(shape);
        extents.push_back({.begin = begin, .bytes = scratch});
      }
    }
    const bool is_inline = needs.slice_bytes <= SlotHeader::kInline;
    const std::size_t slice = sizeof(SlotHeader) + (is_inline ? 0 : whole_pages(needs.slice_bytes, shape.slot_bytes));
    for (const auto& one : needs.channels) {
      if (has(slices_[index(one)], slice)) continue;
      add_slots(domain_.channel(one.from, one.to), shape.slots, shape.slot_bytes, slice, extents);
    }
    const std::size_t whole = sizeof(SlotHeader) + shape.pair_slot_bytes;
    for (const auto& one : needs.pair_channels) {
      if (has(pairs_[index(one)], whole)) continue;
      add_slots(domain_.pair_channel(one.from, one.to), shape.pair_slots, shape.pair_slot_bytes, whole, extents);
    }
    return allocate_pages(extents);
  }

 private:
  /// Few sizes, so that calls of many lengths have little to do.
  [[nodiscard]] static std::size_t whole_pages(std::size_t bytes, std::size_t most) {
    constexpr std::size_t kPage = 4096;
    return std::min((bytes + kPage - 1) / kPage * kPage, most);
  }
  /// After a failure nobody asks again: the communicator is over.
  [[nodiscard]] static bool has(std::size_t& known, std::size_t bytes) {
    if (bytes <= known) return true;
    known = bytes;
    return false;
  }
  [[nodiscard]] std::size_t index(const MemoryNeeds::Channel& channel) const {
    return static_cast<std::size_t>(channel.from) * scratch_.size() + static_cast<std::size_t>(channel.to);
  }
  /// The receiver's count, and of each slot the first `bytes`, header included.
  static void add_slots(const ChannelMemory& channel, int slots, std::size_t slot_bytes, std::size_t bytes,
                        std::vector<MappedPart>& extents) {
    extents.push_back({.begin = reinterpret_cast<std::byte*>(channel.consumed), .bytes = kCacheLine});
    for (int slot = 0; slot < slots; ++slot) {
      std::byte* const begin = channel.slots + static_cast<std::size_t>(slot) * (sizeof(SlotHeader) + slot_bytes);
      extents.push_back({.begin = begin, .bytes = bytes});
    }
  }

  const Domain& domain_;
  std::vector<std::size_t> scratch_;         // [rank]: bytes of each generation
  std::vector<std::size_t> slices_, pairs_;  // [from][to]: bytes of each slot
};

class ShmDomain final : public Domain {
 public:
  ShmDomain(const char* name, const DomainShape& shape, std::byte* base, bool grows,
            std::vector<MappedPart> brought = {})
      : Domain(shape, name, base),
        heaps_(static_cast<std::size_t>(shape.ranks), Heap(shape.heap_bytes)),
        brought_(std::move(brought)) {
    if (grows) growth_.emplace(*this);
  }
  ~ShmDomain() override { munmap(base(), domain_bytes(shape())); }

  [[nodiscard]] bool allocates_when_needed() const override { return growth_.has_value(); }
  [[nodiscard]] Status allocate(const MemoryNeeds& needs) override {
    return growth_ ? growth_->allocate(needs) : Status();
  }

  Result<void*> alloc_shared(int rank, std::size_t bytes) override {
    TUTTI_ASSIGN_OR_RETURN(const std::size_t offset, own_heap(rank).allocate(bytes));
    std::byte* const buffer = seat(rank).heap + offset;
    const MappedPart extent{.begin = buffer, .bytes = bytes};
    const Status allocated = growth_ ? allocate_pages({&extent, 1}) : Status();
    if (allocated.is_ok()) return static_cast<void*>(buffer);
    own_heap(rank).release(offset);
    return allocated;
  }
  void free_shared(int rank, void* pointer) override { own_heap(rank).release(offset_of(rank, pointer)); }

  [[nodiscard]] bool is_shared(int rank, const void* pointer, std::size_t bytes) const override {
    const std::size_t offset = offset_of(rank, pointer);
    if (!brought_.empty()) {
      const std::size_t all = brought_[static_cast<std::size_t>(rank)].bytes;
      return offset < all && bytes <= all - offset;
    }
    return offset < shape().heap_bytes && heaps_[static_cast<std::size_t>(rank)].holds(offset, bytes);
  }

  Result<std::shared_ptr<GroupMemory>> make_group_memory(std::size_t bytes) override {
    TUTTI_ASSIGN_OR_RETURN(const int fd, create_memory("tutti-group", bytes));
    const Result<std::byte*> base = map(fd, bytes);
    if (!base.is_ok()) {
      close(fd);
      return base.status();
    }
    return std::shared_ptr<GroupMemory>(std::make_shared<ShmGroupMemory>(base.value(), bytes, fd));
  }
  Result<std::shared_ptr<GroupMemory>> take_group_memory(const GroupMemory::Offer& offer, std::size_t bytes) override {
    const std::string path = fmt::format("/proc/{}/fd/{}", offer.words[0], offer.words[1]);
    const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) return error(Code::io, "cannot open the group's memory {}: {}", path, std::strerror(errno));
    const Result<std::byte*> base = map(fd, bytes);
    close(fd);
    TUTTI_RETURN_IF_ERROR(base.status());
    return std::shared_ptr<GroupMemory>(std::make_shared<ShmGroupMemory>(base.value(), bytes, -1));
  }

 protected:
  [[nodiscard]] std::byte* heap(int rank) const override {
    return brought_.empty() ? Domain::heap(rank) : brought_[static_cast<std::size_t>(rank)].begin;
  }

 private:
  [[nodiscard]] Heap& own_heap(int rank) { return heaps_[static_cast<std::size_t>(rank)]; }
  /// Wraps to a huge number for a pointer below the heap.
  [[nodiscard]] std::size_t offset_of(int rank, const void* pointer) const {
    return reinterpret_cast<std::uintptr_t>(pointer) - reinterpret_cast<std::uintptr_t>(seat(rank).heap);
  }

  std::vector<Heap> heaps_;
  std::vector<MappedPart> brought_;  // [rank]: heaps in place of those of the domain; empty: there are none
  std::optional<Growth> growth_;
};

Result<std::unique_ptr<Domain>> open_any(const char* name, const DomainShape& shape, int fd, std::size_t offset,
                                         std::vector<MappedPart> heaps) {
  const std::size_t bytes = domain_bytes(shape);
  struct stat status {};
  if (fstat(fd, &status) != 0)
    return error(Code::io, "the job's shared memory (descriptor {}): {}", fd, std::strerror(errno));
  if (static_cast<std::size_t>(status.st_size) < offset + bytes) {
    return error(Code::invalid_argument, "the job's shared memory has {} bytes; {} ranks need {}", status.st_size,
                 shape.ranks, offset + bytes);
  }
  TUTTI_ASSIGN_OR_RETURN(std::byte* const base, map(fd, bytes, offset));
  constexpr std::int64_t kBlock = 512;  // the unit of st_blocks
  const bool grows = status.st_blocks * kBlock < status.st_size;
  return std::unique_ptr<Domain>(new ShmDomain(name, shape, base, grows, std::move(heaps)));
}

}  // namespace

Result<std::unique_ptr<Domain>> open_domain(const DomainShape& shape, int fd, std::size_t offset) {
  return open_domain_of(kName, shape, fd, offset);
}

Result<std::unique_ptr<Domain>> open_domain_of(const char* name, const DomainShape& shape, int fd, std::size_t offset) {
  return open_any(name, shape, fd, offset, {});
}

Result<std::unique_ptr<Domain>> open_domain_with_heaps(const DomainShape& shape, int fd,
                                                       std::vector<MappedPart> heaps) {
  return open_any(kName, shape, fd, 0, std::move(heaps));
}

const Transport& transport() {
  static constexpr Transport kRow{
      .number = kTransportNumber,
      .built_for = kTransportBuild,
      .name = kName,
      .note = "processes of one node",
      .serves = bit_of(RanksIn::own_processes),
      .addresses_peers = true,
      .spans_hosts = false,
      .shape = [](int ranks, int, std::size_t heap_bytes) { return deepened(default_shape(ranks, heap_bytes)); },
      .shared_bytes = [](const DomainShape& shape, RanksIn) { return domain_bytes(shape); },
      .open = [](const DomainShape& shape, const Opening& opening) { return open_domain(shape, opening.memory); },
  };
  return kRow;
}

}  // namespace tutti::shm
