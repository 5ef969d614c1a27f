// SPDX-License-Identifier: Apache-2.0
// What a rank has of one rank of another host: a copy of its flag lines, and both channels of each kind between the
// two. It is memory of this rank alone. A link fills in what the other rank writes, and takes from here what this rank
// writes. Channels are made on first use: most pairs of a large world never talk.
//
// Where an adapter writes here by itself, all of it is one piece: | their lines | channels of collectives | of sends |,
// each of these to the peer and from it. It is laid out alike at both ends, so that a rank knows where the peer reads
// what it writes. Pages that nobody has touched take no memory.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "impl/transports/domain.h"
#include "impl/transports/link.h"

namespace tutti {

/// Bytes of a line that cross: its flag, hash and payload.
inline constexpr std::size_t kLineOnTheWay = 64;

class Mirror {
 public:
  enum class Memory : std::uint8_t { on_first_use, one_piece };
  /// `mine` are the lines of this rank, of all generations.
  Mirror(const DomainShape& shape, const FlagLine* mine, Memory memory = Memory::on_first_use);
  ~Mirror();
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;

  [[nodiscard]] const FlagLine& mine(int generation) const { return mine_[generation]; }
  /// Null where there is no memory for the piece.
  [[nodiscard]] FlagLine* theirs() { return theirs_; }
  /// Nobody writes it: what the other rank has completed is not told.
  [[nodiscard]] CompletionLine* completion() { return &completion_; }

  /// My slots, and the peer's count. Null where there is no memory for them.
  [[nodiscard]] ChannelMemory to_peer(ChannelOf channel) { return memory_of(channel, true); }
  /// The peer's slots, and my count.
  [[nodiscard]] ChannelMemory from_peer(ChannelOf channel) { return memory_of(channel, false); }
  /// A slot of mine that is published: its header and `bytes` behind it.
  [[nodiscard]] std::span<const std::byte> published(ChannelOf channel, std::uint64_t slice, std::size_t bytes);

  [[nodiscard]] int slots(ChannelOf channel) const {
    return channel == ChannelOf::collectives ? shape_.slots : shape_.pair_slots;
  }
  [[nodiscard]] std::size_t slot_bytes(ChannelOf channel) const {
    return channel == ChannelOf::collectives ? shape_.slot_bytes : shape_.pair_slot_bytes;
  }
  [[nodiscard]] int generations() const { return shape_.generations; }

  // ---- in one piece: where things are, in bytes from its beginning

  /// Empty where there is no memory for it. Requires: one_piece.
  [[nodiscard]] std::span<std::byte> piece() { return {piece_, piece_ == nullptr ? 0 : piece_bytes()}; }
  /// Where the peer reads my line.
  [[nodiscard]] static std::size_t line_at_peer(int generation) {
    return static_cast<std::size_t>(generation) * sizeof(FlagLine);
  }
  /// Where the peer reads my slice.
  [[nodiscard]] std::size_t slice_at_peer(ChannelOf channel, std::uint64_t slice) const;
  /// Where the peer reads how many of its slices I have released.
  [[nodiscard]] std::size_t count_at_peer(ChannelOf channel) const { return place_of(channel, true); }

  // ---- what arrives, in the order in which the peer told it

  /// The bytes of a line, as they were when it was announced. An older flag is dropped.
  void take_line(int generation, std::span<const std::byte, kLineOnTheWay> line);
  /// Where the payload of the next slice goes; null where there is no memory. Requires: is_next.
  [[nodiscard]] std::byte* payload_of(ChannelOf channel, std::uint64_t slice);
  /// The payload is there: the header follows, its number last.
  void take_slice(ChannelOf channel, std::uint64_t slice, std::span<const std::byte, sizeof(SlotHeader)> header);
  void take_count(ChannelOf channel, std::uint64_t count);
  /// Whether the peer may have written this slice: the one after the last, in a slot that is free.
  [[nodiscard]] bool is_next(ChannelOf channel, std::uint64_t slice);
  /// Whether the peer may have released so many: no fewer than before, and no more than were published.
  [[nodiscard]] bool is_possible_count(ChannelOf channel, std::uint64_t count, std::uint64_t published);

 private:
  struct Lane {
    std::byte* memory = nullptr;  ///< of both directions; null before the first use
    std::uint64_t taken = 0;      ///< slices that have arrived
  };
  [[nodiscard]] Lane& lane(ChannelOf channel) { return lanes_[static_cast<std::size_t>(channel)]; }
  [[nodiscard]] std::size_t direction_bytes(ChannelOf channel) const;
  /// To the peer, then from it; null where there is no memory.
  [[nodiscard]] std::byte* both_directions(ChannelOf channel);
  [[nodiscard]] ChannelMemory memory_of(ChannelOf channel, bool is_to_peer);
  [[nodiscard]] SlotHeader* slot(const ChannelMemory& memory, ChannelOf channel, std::uint64_t slice) const;
  [[nodiscard]] std::size_t offset_of_slot(ChannelOf channel, std::uint64_t slice) const;
  /// Of a direction of a channel, in the piece.
  [[nodiscard]] std::size_t place_of(ChannelOf channel, bool is_to_peer) const;
  [[nodiscard]] std::size_t lines_bytes() const {
    return static_cast<std::size_t>(shape_.generations) * sizeof(FlagLine);
  }
  [[nodiscard]] std::size_t piece_bytes() const;

  DomainShape shape_;
  const FlagLine* mine_;
  bool is_one_piece_;
  std::vector<FlagLine> own_lines_;  ///< where it is not one piece
  std::byte* piece_ = nullptr;
  FlagLine* theirs_;
  CompletionLine completion_{};
  std::array<Lane, kChannelsOfPair> lanes_;
};

/// Slices that were released and not told yet. They are told with whatever goes to the peer, when half of the slots are
/// owed, and when there is nothing else to do. A ring may need all slots of a channel, and data and counts of a ring go
/// over different links: so counts must not wait for data for ever.
struct Credit {
  std::uint64_t due = 0;
  std::uint64_t told = 0;
  [[nodiscard]] bool is_owed() const { return due != told; }
  [[nodiscard]] bool is_urgent(int slots) const { return due - told >= static_cast<std::uint64_t>((slots + 1) / 2); }
};

}  // namespace tutti
