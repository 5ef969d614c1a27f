// SPDX-License-Identifier: Apache-2.0
// What goes over a link once the two ends have greeted each other: frames, in the byte order of the machines, which are
// of one kind. Each has a place before it is sent: the slot that it goes to is free, and lines and counts are
// overwritten. So the reader never has to keep more than a header, and a frame that a peer could not send is an error.
//
//   header | slot header | payload   slice
//   header                           count, bye
//   header | text                    abort: how all name the failure
//   header | flag, hash, payload     line
//   header | 64 bytes                note: of a network that says here what it does elsewhere
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "impl/transports/mirror.h"

namespace tutti::tcp {

enum class Kind : std::uint8_t { slice = 1, count, line, abort, bye, note };

struct FrameHeader {
  std::uint32_t bytes = 0;  ///< that follow
  Kind kind = Kind::slice;
  ChannelOf channel = ChannelOf::collectives;
  std::uint16_t communicator = 0;  ///< 0: the world
  std::uint64_t number = 0;        ///< slice, count, generation, rank
};
static_assert(sizeof(FrameHeader) == 16);

inline constexpr std::size_t kNoteBytes = 64;
inline constexpr std::size_t kMostAbortText = 1024;
using Note = std::span<const std::byte, kNoteBytes>;
using TakeNote = std::function<void(std::uint64_t number, Note note)>;

/// Takes a stream of bytes apart, in pieces of any length, and fills the mirror.
class FrameReader {
 public:
  /// `published[channel]`: slices that went to the peer so far.
  FrameReader(Mirror& mirror, std::span<const std::uint64_t, kChannelsOfPair> published)
      : mirror_(mirror), published_(published) {}
  /// Without it a note is no frame.
  void give_notes_to(TakeNote take_note) { take_note_ = std::move(take_note); }

  /// Takes all of it. Errors: io (no frame, or one that has no place here), resource; for ever after.
  Status take(std::span<const std::byte> bytes);
  /// Where the rest of a payload goes, for whoever can read into it; empty between payloads.
  [[nodiscard]] std::span<std::byte> wanted() const { return payload_; }
  /// The first `bytes` of `wanted` are there.
  void put(std::size_t bytes);

  [[nodiscard]] bool has_left() const { return has_left_; }
  [[nodiscard]] int aborted_rank() const { return aborted_rank_; }  ///< -1: none
  [[nodiscard]] const std::string& abort_text() const { return abort_text_; }
  /// A frame has begun and is not whole.
  [[nodiscard]] bool is_within_frame() const { return kept_ > 0 || !payload_.empty(); }

 private:
  static constexpr std::size_t kMostKept = sizeof(FrameHeader) + kMostAbortText;
  static_assert(kMostAbortText >= kNoteBytes && kMostAbortText >= kLineOnTheWay);
  [[nodiscard]] FrameHeader header() const;
  /// How much is to be kept before the frame can be acted on. Errors: io.
  [[nodiscard]] Result<std::size_t> needed() const;
  Status act();
  Status begin_slice(const FrameHeader& header);
  void end_slice();

  Mirror& mirror_;
  std::span<const std::uint64_t, kChannelsOfPair> published_;
  TakeNote take_note_;
  std::array<std::byte, kMostKept> kept_bytes_{};
  std::size_t kept_ = 0;
  std::span<std::byte> payload_;  ///< of the slice at hand: what is missing
  bool has_left_ = false;
  int aborted_rank_ = -1;
  std::string abort_text_;
};

}  // namespace tutti::tcp
