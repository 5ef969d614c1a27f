// SPDX-License-Identifier: Apache-2.0
#include "impl/transports/mirror.h"

#include <cstring>
#include <sys/mman.h>

namespace tutti {

Mirror::Mirror(const DomainShape& shape, const FlagLine* mine)
    : shape_(shape), mine_(mine), theirs_(static_cast<std::size_t>(shape.generations)) {}

Mirror::~Mirror() {
  for (const ChannelOf channel : {ChannelOf::collectives, ChannelOf::sends}) {
    if (lane(channel).memory != nullptr) munmap(lane(channel).memory, 2 * direction_bytes(channel));
  }
}

std::size_t Mirror::direction_bytes(ChannelOf channel) const {
  return kCacheLine + static_cast<std::size_t>(slots(channel)) * (sizeof(SlotHeader) + slot_bytes(channel));
}

ChannelMemory Mirror::memory_of(ChannelOf channel, bool is_to_peer) {
  Lane& lane = this->lane(channel);
  const std::size_t bytes = direction_bytes(channel);
  if (lane.memory == nullptr) {
    void* const made = mmap(nullptr, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) return {};
    lane.memory = static_cast<std::byte*>(made);
  }
  std::byte* const begin = lane.memory + (is_to_peer ? 0 : bytes);
  return {.consumed = reinterpret_cast<std::atomic<std::uint64_t>*>(begin), .slots = begin + kCacheLine};
}

SlotHeader* Mirror::slot(const ChannelMemory& memory, ChannelOf channel, std::uint64_t slice) const {
  if (memory.slots == nullptr) return nullptr;
  const std::uint64_t index = (slice - 1) % static_cast<std::uint64_t>(slots(channel));
  return reinterpret_cast<SlotHeader*>(memory.slots + index * (sizeof(SlotHeader) + slot_bytes(channel)));
}

std::span<const std::byte> Mirror::published(ChannelOf channel, std::uint64_t slice, std::size_t bytes) {
  const auto* const header = slot(to_peer(channel), channel, slice);
  return {reinterpret_cast<const std::byte*>(header), sizeof(SlotHeader) + bytes};
}

void Mirror::take_line(int generation, std::span<const std::byte, kLineOnTheWay> line) {
  FlagLine& to = theirs_[static_cast<std::size_t>(generation)];
  std::uint64_t flag;
  std::memcpy(&flag, line.data(), sizeof flag);
  if (flag < to.flag.load(std::memory_order_relaxed)) return;
  std::memcpy(&to.hash, line.data() + offsetof(FlagLine, hash), sizeof to.hash);
  std::memcpy(to.payload.data(), line.data() + offsetof(FlagLine, payload), to.payload.size());
  to.flag.store(flag, std::memory_order_release);
}

std::byte* Mirror::payload_of(ChannelOf channel, std::uint64_t slice) {
  SlotHeader* const header = slot(from_peer(channel), channel, slice);
  return header == nullptr ? nullptr : reinterpret_cast<std::byte*>(header + 1);
}

void Mirror::take_slice(ChannelOf channel, std::uint64_t slice, std::span<const std::byte, sizeof(SlotHeader)> header) {
  SlotHeader& to = *slot(from_peer(channel), channel, slice);
  constexpr std::size_t kAfterMessage = sizeof to.message;
  std::memcpy(reinterpret_cast<std::byte*>(&to) + kAfterMessage, header.data() + kAfterMessage,
              sizeof to - kAfterMessage);
  lane(channel).taken = slice;
  to.message.store(slice, std::memory_order_release);
}

void Mirror::take_count(ChannelOf channel, std::uint64_t count) {
  const ChannelMemory memory = to_peer(channel);
  if (memory.consumed != nullptr) memory.consumed->store(count, std::memory_order_release);
}

bool Mirror::is_next(ChannelOf channel, std::uint64_t slice) {
  const std::uint64_t taken = lane(channel).taken;
  if (slice != taken + 1) return false;
  const ChannelMemory memory = from_peer(channel);
  const std::uint64_t released = memory.consumed == nullptr ? 0 : memory.consumed->load(std::memory_order_relaxed);
  return taken - released < static_cast<std::uint64_t>(slots(channel));
}

bool Mirror::is_possible_count(ChannelOf channel, std::uint64_t count, std::uint64_t published) {
  const ChannelMemory memory = to_peer(channel);
  const std::uint64_t before = memory.consumed == nullptr ? 0 : memory.consumed->load(std::memory_order_relaxed);
  return count >= before && count <= published;
}

}  // namespace tutti
