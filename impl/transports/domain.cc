// SPDX-License-Identifier: Apache-2.0
#include "impl/transports/domain.h"

#include <algorithm>
#include <bit>

#include "impl/transports/journal.h"

namespace tutti {
namespace {

constexpr std::size_t kPage = 4096;

std::size_t round_up(std::size_t value, std::size_t to) { return (value + to - 1) / to * to; }

/// Where each part of a domain begins:
///   | abort line, doorbell | control of each rank | journal of each rank | scratch of each rank |
///   | channels, [from][to] | pair channels | heaps |
struct Layout {
  explicit Layout(const DomainShape& shape)
      : ranks(static_cast<std::size_t>(shape.ranks)),
        generations(static_cast<std::size_t>(shape.generations)),
        control_stride((generations + 1) * sizeof(FlagLine)),
        journal_stride(round_up(sizeof(Journal) + journal_ranks(shape) * sizeof(std::int64_t), kCacheLine)),
        scratch_stride(round_up(generations * tutti::scratch_stride(shape), kPage)),
        channel_stride(kCacheLine + static_cast<std::size_t>(shape.slots) * (sizeof(SlotHeader) + shape.slot_bytes)),
        pair_stride(kCacheLine +
                    static_cast<std::size_t>(shape.pair_slots) * (sizeof(SlotHeader) + shape.pair_slot_bytes)),
        heap_stride(round_up(shape.heap_bytes, kPage)),
        control(sizeof(FlagLine)),  // of which the abort line and the doorbell take the first two lines
        journals(control + ranks * control_stride),
        scratch(round_up(journals + ranks * journal_stride, kPage)),
        channels(scratch + ranks * scratch_stride),
        pairs(channels + ranks * ranks * channel_stride),
        heaps(round_up(pairs + ranks * ranks * pair_stride, kPage)),
        total(heaps + ranks * heap_stride) {}

  static std::size_t journal_ranks(const DomainShape& shape) {
    return static_cast<std::size_t>(shape.journal_ranks > 0 ? shape.journal_ranks : shape.ranks);
  }

  std::size_t ranks, generations;
  std::size_t control_stride, journal_stride, scratch_stride, channel_stride, pair_stride, heap_stride;
  std::size_t control, journals, scratch, channels, pairs, heaps, total;
};

}  // namespace

DomainShape default_shape(int ranks, std::size_t heap_bytes, std::size_t channel_budget) {
  constexpr std::size_t kScratchBudget = std::size_t{16} << 20U;  // of a generation: what one rank may read of all
  constexpr std::size_t kLeastScratch = 4096;
  DomainShape shape{.ranks = ranks, .heap_bytes = heap_bytes};
  const auto seats = static_cast<std::size_t>(ranks);
  const auto share = [](std::size_t budget, std::size_t parts, std::size_t least, std::size_t most) {
    return std::clamp(budget / parts / kCacheLine * kCacheLine, least, most);
  };
  const auto slot_share = [&](std::size_t budget, int slots, std::size_t most) {
    return share(budget, seats * seats * static_cast<std::size_t>(slots), 4 * kCacheLine, most);
  };
  shape.scratch_bytes = share(kScratchBudget, seats, kLeastScratch, shape.scratch_bytes);
  shape.slot_bytes = slot_share(channel_budget, shape.slots, shape.slot_bytes);
  shape.pair_slot_bytes = slot_share(channel_budget / 4, shape.pair_slots, shape.pair_slot_bytes);
  return shape;
}

DomainShape shape_across_hosts(int ranks, int hosts, std::size_t heap_bytes) {
  constexpr int kFewRanks = 16;  // a rank's windows to all of them stay within its share of the caches
  const auto on_a_host = static_cast<std::size_t>((ranks + hosts - 1) / hosts);
  DomainShape shape = default_shape(ranks, heap_bytes);
  shape.hosts = hosts;
  shape.slots = ranks <= kFewRanks ? 16 : 8;
  shape.pair_slots = shape.slots / 2;
  const auto share = [](std::size_t budget, std::size_t parts, std::size_t least, std::size_t most) {
    return std::clamp(budget / parts / kCacheLine * kCacheLine, least, most);
  };
  const auto slot_share = [&](std::size_t budget, int slots) {
    const std::size_t parts = on_a_host * on_a_host * static_cast<std::size_t>(slots);
    return share(budget, parts, 4 * kCacheLine, std::size_t{64} * 1024);
  };
  shape.slot_bytes = slot_share(std::size_t{64} << 20U, shape.slots);
  shape.pair_slot_bytes = slot_share(std::size_t{32} << 20U, shape.pair_slots);
  shape.scratch_bytes = share(std::size_t{16} << 20U, on_a_host, 4096, std::size_t{1} << 20U);
  return shape;
}

DomainShape deepened(DomainShape shape) {
  constexpr int kFewRanks = 16;
  constexpr std::size_t kArea = std::size_t{512} << 10U;
  constexpr std::size_t kChannels = std::size_t{16} << 20U;  // all of one kind
  constexpr std::size_t kMostSlots = 64;
  if (shape.ranks > kFewRanks) return shape;
  shape.scratch_area = kArea;
  const auto pairs = static_cast<std::size_t>(shape.ranks) * static_cast<std::size_t>(shape.ranks);
  const auto slots_of = [&](int usual, std::size_t slot_bytes) {
    return std::max(usual, static_cast<int>(std::bit_floor(std::min(kMostSlots, kChannels / pairs / slot_bytes))));
  };
  shape.slots = slots_of(shape.slots, shape.slot_bytes);
  shape.pair_slots = slots_of(shape.pair_slots, shape.pair_slot_bytes);
  return shape;
}

std::size_t domain_bytes(const DomainShape& shape) { return Layout(shape).total; }
std::size_t control_bytes(const DomainShape& shape) { return Layout(shape).scratch; }

Domain::Domain(DomainShape shape, const char* transport, std::byte* base)
    : shape_(shape), transport_(transport), base_(base) {}

Domain::~Domain() = default;

Seat Domain::seat(int rank) const {
  const Layout layout(shape_);
  const auto r = static_cast<std::size_t>(rank);
  std::byte* control = base_ + layout.control + r * layout.control_stride;
  return {.lines = reinterpret_cast<FlagLine*>(control),
          .completion = reinterpret_cast<CompletionLine*>(control + layout.generations * sizeof(FlagLine)),
          .scratch = base_ + layout.scratch + r * layout.scratch_stride,
          .heap = heap(rank),
          .journal = reinterpret_cast<Journal*>(base_ + layout.journals + r * layout.journal_stride)};
}

std::byte* Domain::heap(int rank) const {
  const Layout layout(shape_);
  if (shape_.heap_bytes == 0) return nullptr;
  return base_ + layout.heaps + static_cast<std::size_t>(rank) * layout.heap_stride;
}

ChannelMemory Domain::channel(int from, int to) const {
  const Layout layout(shape_);
  const std::size_t index = static_cast<std::size_t>(from) * layout.ranks + static_cast<std::size_t>(to);
  std::byte* begin = base_ + layout.channels + index * layout.channel_stride;
  return {.consumed = reinterpret_cast<std::atomic<std::uint64_t>*>(begin), .slots = begin + kCacheLine};
}

ChannelMemory Domain::pair_channel(int from, int to) const {
  const Layout layout(shape_);
  const std::size_t index = static_cast<std::size_t>(from) * layout.ranks + static_cast<std::size_t>(to);
  std::byte* begin = base_ + layout.pairs + index * layout.pair_stride;
  return {.consumed = reinterpret_cast<std::atomic<std::uint64_t>*>(begin), .slots = begin + kCacheLine};
}

AbortLine& Domain::abort_line() const { return *reinterpret_cast<AbortLine*>(base_); }

Doorbell& Domain::doorbell() const { return *reinterpret_cast<Doorbell*>(base_ + sizeof(AbortLine)); }

std::string Domain::name_of(int rank) const { return fmt::format("rank {}", rank); }

Status Domain::allocate(const MemoryNeeds& /*needs*/) { return {}; }

Result<std::unique_ptr<Domain>> Domain::make_group_across(const GroupPlace& /*place*/,
                                                          std::shared_ptr<GroupMemory> /*memory*/) {
  return error(Code::unavailable, "{} has no groups on several hosts", transport_);
}

}  // namespace tutti
