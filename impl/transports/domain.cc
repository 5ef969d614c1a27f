// SPDX-License-Identifier: Apache-2.0
#include "impl/transports/domain.h"

#include <algorithm>

namespace tutti {
namespace {

constexpr std::size_t kPage = 4096;

std::size_t round_up(std::size_t value, std::size_t to) { return (value + to - 1) / to * to; }

/// Where each part of a domain begins:
///   | abort line | control of each rank | scratch of each rank | channels, [from][to] | heaps |
struct Layout {
  explicit Layout(const DomainShape& shape)
      : ranks(static_cast<std::size_t>(shape.ranks)),
        generations(static_cast<std::size_t>(shape.generations)),
        control_stride((generations + 1) * sizeof(FlagLine)),
        scratch_stride(round_up(generations * shape.scratch_bytes, kPage)),
        channel_stride(kCacheLine + static_cast<std::size_t>(shape.slots) * (sizeof(SlotHeader) + shape.slot_bytes)),
        heap_stride(round_up(shape.heap_bytes, kPage)),
        control(sizeof(FlagLine)),
        scratch(round_up(control + ranks * control_stride, kPage)),
        channels(scratch + ranks * scratch_stride),
        heaps(round_up(channels + ranks * ranks * channel_stride, kPage)),
        total(heaps + ranks * heap_stride) {}

  std::size_t ranks, generations;
  std::size_t control_stride, scratch_stride, channel_stride, heap_stride;
  std::size_t control, scratch, channels, heaps, total;
};

}  // namespace

DomainShape default_shape(int ranks, std::size_t heap_bytes, std::size_t channel_budget) {
  DomainShape shape{.ranks = ranks, .heap_bytes = heap_bytes};
  const std::size_t slots =
      static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks) * static_cast<std::size_t>(shape.slots);
  const std::size_t share = channel_budget / slots / kCacheLine * kCacheLine;
  shape.slot_bytes = std::clamp(share, 4 * kCacheLine, shape.slot_bytes);
  return shape;
}

std::size_t domain_bytes(const DomainShape& shape) { return Layout(shape).total; }

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
          .heap = shape_.heap_bytes > 0 ? base_ + layout.heaps + r * layout.heap_stride : nullptr};
}

ChannelMemory Domain::channel(int from, int to) const {
  const Layout layout(shape_);
  const std::size_t index = static_cast<std::size_t>(from) * layout.ranks + static_cast<std::size_t>(to);
  std::byte* begin = base_ + layout.channels + index * layout.channel_stride;
  return {.consumed = reinterpret_cast<std::atomic<std::uint64_t>*>(begin), .slots = begin + kCacheLine};
}

AbortLine& Domain::abort_line() const { return *reinterpret_cast<AbortLine*>(base_); }

}  // namespace tutti
