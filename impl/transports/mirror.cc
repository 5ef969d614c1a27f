// SPDX-License-Identifier: Apache-2.0
#include "impl/transports/mirror.h"

#include <cstring>
#include <sys/mman.h>

namespace tutti {

namespace {

std::byte* zeroed(std::size_t bytes) {
  void* const made = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return made == MAP_FAILED ? nullptr : static_cast<std::byte*>(made);
}

}  // namespace

Mirror::Mirror(const DomainShape& shape, const FlagLine* mine, Memory memory)
    : shape_(shape), mine_(mine), is_one_piece_(memory == Memory::one_piece) {
  if (is_one_piece_) {
    piece_ = zeroed(piece_bytes());
    theirs_ = reinterpret_cast<FlagLine*>(piece_);
  } else {
    own_lines_ = std::vector<FlagLine>(static_cast<std::size_t>(shape.generations));
    theirs_ = own_lines_.data();
  }
}

Mirror::~Mirror() {
  if (piece_ != nullptr) munmap(piece_, piece_bytes());
  for (const ChannelOf channel : {ChannelOf::collectives, ChannelOf::sends}) {
    if (lane(channel).memory != nullptr) munmap(lane(channel).memory, 2 * direction_bytes(channel));
  }
}

std::size_t Mirror::direction_bytes(ChannelOf channel) const {
  return kCacheLine + static_cast<std::size_t>(slots(channel)) * (sizeof(SlotHeader) + slot_bytes(channel));
}

std::size_t Mirror::place_of(ChannelOf channel, bool is_to_peer) const {
  const std::size_t before = channel == ChannelOf::collectives ? 0 : 2 * direction_bytes(ChannelOf::collectives);
  return lines_bytes() + before + (is_to_peer ? 0 : direction_bytes(channel));
}

std::size_t Mirror::piece_bytes() const {
  return place_of(ChannelOf::sends, true) + 2 * direction_bytes(ChannelOf::sends);
}

std::size_t Mirror::slice_at_peer(ChannelOf channel, std::uint64_t slice) const {
  return place_of(channel, false) + kCacheLine + offset_of_slot(channel, slice);
}

std::byte* Mirror::both_directions(ChannelOf channel) {
  if (is_one_piece_) return piece_ == nullptr ? nullptr : piece_ + place_of(channel, true);
  Lane& lane = this->lane(channel);
  if (lane.memory == nullptr) lane.memory = zeroed(2 * direction_bytes(channel));
  return lane.memory;
}

ChannelMemory Mirror::memory_of(ChannelOf channel, bool is_to_peer) {
  std::byte* const both = both_directions(channel);
  if (both == nullptr) return {};
  std::byte* const begin = both + (is_to_peer ? 0 : direction_bytes(channel));
  return {.consumed = reinterpret_cast<std::atomic<std::uint64_t>*>(begin), .slots = begin + kCacheLine};
}

std::size_t Mirror::offset_of_slot(ChannelOf channel, std::uint64_t slice) const {
  const std::uint64_t index = (slice - 1) % static_cast<std::uint64_t>(slots(channel));
  return index * (sizeof(SlotHeader) + slot_bytes(channel));
}

SlotHeader* Mirror::slot(const ChannelMemory& memory, ChannelOf channel, std::uint64_t slice) const {
  if (memory.slots == nullptr) return nullptr;
  return reinterpret_cast<SlotHeader*>(memory.slots + offset_of_slot(channel, slice));
}

std::span<const std::byte> Mirror::published(ChannelOf channel, std::uint64_t slice, std::size_t bytes) {
  const auto* const header = slot(to_peer(channel), channel, slice);
  return {reinterpret_cast<const std::byte*>(header), sizeof(SlotHeader) + bytes};
}

void Mirror::take_line(int generation, std::span<const std::byte, kLineOnTheWay> line) {
  FlagLine& to = theirs_[generation];
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
