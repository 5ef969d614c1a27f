// SPDX-License-Identifier: Apache-2.0
// A domain is the memory that a set of ranks shares: their flag lines, scratch, channels and heaps, as seen from this
// address space. A transport opens it (transport.h).
//
// Per rank and generation there is one cache line. It holds the flag (operation number << 16 | phase), the hash of the
// plan's key and 48 bytes more. Those hold either small scratch or references to the user's buffers, whichever the plan
// needs. References have no line of their own: reading it would cost every exposed operation one more transfer.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "impl/types/status.h"

namespace tutti {

inline constexpr std::size_t kCacheLine = 64;

/// Where a rank's buffers are: offsets from its heap base. Atomic so that each is one store. A compiler that joins them
/// loads both addresses at once, just after they were stored apart, which the store buffer cannot forward.
struct References {
  std::atomic<std::uint64_t> input;
  std::atomic<std::uint64_t> output;
};
/// Generations lie 256 bytes apart: the processor fetches neighbouring lines, and one rank's next flag must not travel
/// with this one.
struct alignas(4 * kCacheLine) FlagLine {
  std::atomic<std::uint64_t> flag;
  std::uint64_t hash;
  std::array<std::byte, 48> payload;  ///< scratch, or References
};

/// "All operations up to `operation` are complete here", stored lazily (see impl/execute/README.md); and what the last
/// trial of ways to store to scratch cost here (impl/communicator/store_choice.h).
struct alignas(kCacheLine) CompletionLine {
  std::atomic<std::uint64_t> operation;
  std::atomic<std::uint64_t> trial;  ///< hash of its plan's key
  std::array<std::atomic<float>, 2> costs;
};

/// One slot of a channel: header line, then `slot_bytes` of payload. Messages of at most kInline bytes travel in the
/// header.
struct alignas(kCacheLine) SlotHeader {
  static constexpr std::size_t kInline = 40;
  std::atomic<std::uint64_t> message;  ///< number of the slice that the slot holds, from 1
  std::uint64_t bytes;                 ///< what is left of the message, this slice included
  std::uint32_t hash;
  std::uint32_t tag;  ///< of a send; unused in channels of collectives
  std::array<std::byte, kInline> payload;
};
static_assert(sizeof(SlotHeader) == kCacheLine);

/// Where the first failure is announced, so that all ranks stop; written and read by failure.h.
struct alignas(kCacheLine) AbortLine {
  std::atomic<std::uint64_t> word;
};

/// Where ranks that have waited for long sleep, and which ranks ring there (impl/execute/README.md, Parking).
struct alignas(kCacheLine) Doorbell {
  std::atomic<std::uint32_t> rings;     ///< the futex
  std::atomic<std::uint32_t> sleepers;  ///< 0: nobody to wake
};

/// What a domain holds, the same for all ranks that share it.
struct DomainShape {
  int ranks = 1;
  int generations = 4;                     ///< K: a power of two
  std::size_t scratch_bytes = 256 * 1024;  ///< per rank and generation
  /// Per rank and generation: in which the scratch of an operation moves on from one to the next
  /// (impl/execute/README.md). 0: it does not.
  std::size_t scratch_area = 0;
  int slots = 8;                            ///< per channel
  std::size_t slot_bytes = 16 * 1024;       ///< a multiple of 64
  std::size_t heap_bytes = 0;               ///< per rank, for alloc_shared; shm only
  int pair_slots = 4;                       ///< per pair channel: those of sends and receives
  std::size_t pair_slot_bytes = 16 * 1024;  ///< a multiple of 64
  int hosts = 1;                            ///< that the ranks are on, in blocks (hosts.h)
  std::vector<int> ranks_on = {};           ///< [host], where they are not dealt evenly; empty: Hosts::in_blocks
  int journal_ranks = 0;                    ///< of the world, where these are the ranks of one of its hosts; 0: ranks
};
/// Default shape for `ranks` ranks. Slots shrink as the P^2 channels grow. All channels stay within `channel_budget`
/// bytes and all pair channels within a quarter of it; a slot has at least 256 bytes. Scratch shrinks on more than 64
/// ranks, so that all ranks' scratch in one generation stays within 16 MiB, which caches hold. A rank has at least 4
/// KiB.
[[nodiscard]] DomainShape default_shape(int ranks, std::size_t heap_bytes,
                                        std::size_t channel_budget = std::size_t{64} << 20U);
/// Default shape for `ranks` ranks on `hosts` hosts. A message crosses a network in few large slices, and a segment in
/// few rounds: slots have up to 64 KiB, and scratch up to 1 MiB. Both ends of a message cut it alike, so ranks of one
/// host have the same slots.
[[nodiscard]] DomainShape shape_across_hosts(int ranks, int hosts, std::size_t heap_bytes);

/// `shape` with memory enough for few ranks that a line of it has left the caches of two cores before it is used again:
/// scratch that moves, and channels of up to 64 slots.
[[nodiscard]] DomainShape deepened(DomainShape shape);
/// From a generation's scratch to the next one's.
[[nodiscard]] inline std::size_t scratch_stride(const DomainShape& shape) {
  return shape.scratch_area > shape.scratch_bytes ? shape.scratch_area : shape.scratch_bytes;
}

class Hosts;
struct GroupPlace;
class Link;
class Network;
struct Journal;

/// One rank's memory as seen from here.
struct Seat {
  FlagLine* lines = nullptr;  ///< [generations]
  CompletionLine* completion = nullptr;
  std::byte* scratch = nullptr;  ///< [generations][scratch_stride]
  std::byte* heap = nullptr;     ///< base of references; nullptr: references are addresses
  Journal* journal = nullptr;    ///< for reports (journal.h); nullptr: it is on another host
};

/// One direction between two ranks.
struct ChannelMemory {
  std::atomic<std::uint64_t>* consumed = nullptr;  ///< slices that the receiver has released
  std::byte* slots = nullptr;                      ///< [slots][sizeof(SlotHeader) + slot_bytes]
};

/// Memory that a rank is about to touch, where it is allocated when it is needed.
struct MemoryNeeds {
  struct Channel {
    int from = 0;
    int to = 0;
    bool operator==(const Channel&) const = default;
  };
  std::vector<int> scratch_of = {};         ///< ranks
  std::size_t scratch_bytes = 0;            ///< of each of them and of each generation: the first that many
  std::vector<Channel> channels = {};       ///< of collectives
  std::size_t slice_bytes = 0;              ///< the longest in them
  std::vector<Channel> pair_channels = {};  ///< whole
};

/// Memory of a group of a domain's ranks. Nobody else has it, and it is gone when the last of them has let go of it or
/// is dead.
class GroupMemory {
 public:
  /// How the others get at it; plain data, to be handed over by a collective of the ranks.
  struct Offer {
    std::array<std::uint64_t, 2> words{};
  };
  virtual ~GroupMemory() = default;
  [[nodiscard]] std::byte* base() const { return base_; }
  /// By the rank that made it: for the others to take. Once they have, or will not, it is to be withdrawn.
  [[nodiscard]] virtual Offer offer() const = 0;
  virtual void withdraw() {}

 protected:
  explicit GroupMemory(std::byte* base) : base_(base) {}

 private:
  std::byte* base_;
};

class Domain {
 public:
  virtual ~Domain();
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;

  [[nodiscard]] const DomainShape& shape() const { return shape_; }
  [[nodiscard]] const char* transport() const { return transport_; }  ///< its name
  [[nodiscard]] virtual Seat seat(int rank) const;
  /// Between ranks of two hosts, one is the rank that sees this domain. Null where there is no memory for it.
  [[nodiscard]] virtual ChannelMemory channel(int from, int to) const;
  /// The channel of sends from one rank to another: pair_slots slots of pair_slot_bytes.
  [[nodiscard]] virtual ChannelMemory pair_channel(int from, int to) const;
  [[nodiscard]] virtual AbortLine& abort_line() const;
  /// One for the world and all its groups: a rank that sleeps may wait for any of them.
  [[nodiscard]] virtual Doorbell& doorbell() const;

  /// The domain that this one is a group of; itself where it is no group.
  [[nodiscard]] virtual Domain& world() { return *this; }
  [[nodiscard]] virtual int world_rank(int rank) const { return rank; }

  /// Whether all ranks are in this process, so that each addresses the memory of all.
  [[nodiscard]] virtual bool is_in_one_process() const { return false; }
  /// The domain as that rank of this process sees it; this one where all see the same.
  [[nodiscard]] virtual Domain& seen_by(int /*rank*/) { return *this; }
  /// Where the ranks are; null: on one host.
  [[nodiscard]] virtual const Hosts* hosts() const { return nullptr; }
  /// By which the rank that sees this domain reaches ranks of other hosts; null where there are none.
  [[nodiscard]] virtual Network* network() { return nullptr; }
  /// How what I write reaches that rank (link.h), which cannot read it here; null where it shares this memory. The same
  /// for as long as the domain is.
  [[nodiscard]] virtual Link* link(int /*rank*/) { return nullptr; }

  /// For messages: "rank 3", "rank 1 of the group (rank 3 of the world)".
  [[nodiscard]] virtual std::string name_of(int rank) const;

  /// Whether parts of the memory are allocated when somebody needs them, so that ranks are to say what they need.
  [[nodiscard]] virtual bool allocates_when_needed() const { return false; }
  /// Has the system allocate what this rank is about to touch: where there is no memory, it would end the process
  /// otherwise. Flag lines and journals are there from the beginning. Errors: resource with the numbers.
  [[nodiscard]] virtual Status allocate(const MemoryNeeds& needs);

  /// From the heap of `rank`, which must be one of this process. Not thread-safe for one rank. Errors: resource.
  [[nodiscard]] virtual Result<void*> alloc_shared(int rank, std::size_t bytes) = 0;
  /// Ignores a pointer that alloc_shared did not give to `rank` or that was freed already, null among them.
  virtual void free_shared(int rank, void* pointer) = 0;
  /// Whether [pointer, pointer + bytes) is from alloc_shared of `rank`.
  [[nodiscard]] virtual bool is_shared(int rank, const void* pointer, std::size_t bytes) const = 0;

  /// Zeroed memory for a group. Errors: resource with the numbers.
  [[nodiscard]] virtual Result<std::shared_ptr<GroupMemory>> make_group_memory(std::size_t bytes) = 0;
  /// That of another rank, while it offers it. Errors: resource, io.
  [[nodiscard]] virtual Result<std::shared_ptr<GroupMemory>> take_group_memory(const GroupMemory::Offer& offer,
                                                                               std::size_t bytes) = 0;
  /// Of a world: what make_group does where the ranks are on several hosts (group_domain.h).
  [[nodiscard]] virtual Result<std::unique_ptr<Domain>> make_group_across(const GroupPlace& place,
                                                                          std::shared_ptr<GroupMemory> memory);

 protected:
  Domain(DomainShape shape, const char* transport, std::byte* base);
  [[nodiscard]] std::byte* base() const { return base_; }
  /// Where the heap of `rank` begins; nullptr where references are addresses.
  [[nodiscard]] virtual std::byte* heap(int rank) const;

 private:
  DomainShape shape_;
  const char* transport_;
  std::byte* base_;
};

/// Bytes of the memory behind a domain of this shape.
[[nodiscard]] std::size_t domain_bytes(const DomainShape& shape);
/// Bytes at its beginning that ranks touch before they say what they need: flag lines and journals.
[[nodiscard]] std::size_t control_bytes(const DomainShape& shape);

}  // namespace tutti
