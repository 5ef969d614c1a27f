// SPDX-License-Identifier: Apache-2.0
#include "impl/transports/tcp/frames.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace tutti::tcp {

FrameHeader FrameReader::header() const {
  FrameHeader header;
  std::memcpy(&header, kept_bytes_.data(), sizeof header);
  return header;
}

Result<std::size_t> FrameReader::needed() const {
  if (kept_ < sizeof(FrameHeader)) return sizeof(FrameHeader);
  const FrameHeader header = this->header();
  const auto wrong = [&](std::string_view what) {
    return error(Code::io, "{} (kind {}, channel {}, number {}, {} bytes)", what, static_cast<int>(header.kind),
                 static_cast<int>(header.channel), header.number, header.bytes);
  };
  const bool is_of_channel = header.channel == ChannelOf::collectives || header.channel == ChannelOf::sends;
  if (!is_of_channel || header.communicator != 0) return wrong("what came is no frame");
  switch (header.kind) {
    case Kind::slice:
      if (header.bytes < sizeof(SlotHeader) || header.bytes > sizeof(SlotHeader) + mirror_.slot_bytes(header.channel)) {
        return wrong("a slice came that fits no slot");
      }
      if (!mirror_.is_next(header.channel, header.number)) return wrong("a slice came that has no free slot");
      return sizeof(FrameHeader) + sizeof(SlotHeader);
    case Kind::line:
      if (header.bytes != kLineOnTheWay || header.number >= static_cast<std::uint64_t>(mirror_.generations())) {
        return wrong("a flag came that has no line");
      }
      return sizeof(FrameHeader) + kLineOnTheWay;
    case Kind::count: {
      const std::uint64_t published = published_[static_cast<std::size_t>(header.channel)];
      if (header.bytes != 0 || !mirror_.is_possible_count(header.channel, header.number, published)) {
        return wrong("a count came of slices that were not sent");
      }
      return sizeof(FrameHeader);
    }
    case Kind::abort:
      if (header.bytes > kMostAbortText ||
          header.number > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) {
        return wrong("what came is no frame");
      }
      return sizeof(FrameHeader) + header.bytes;
    case Kind::bye:
      if (header.bytes != 0 || header.number > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) {
        return wrong("what came is no frame");
      }
      return sizeof(FrameHeader);
    case Kind::note:
      if (take_note_ == nullptr || header.bytes != kNoteBytes) return wrong("what came is no frame");
      return sizeof(FrameHeader) + kNoteBytes;
  }
  return wrong("what came is no frame");
}

Status FrameReader::take(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (!payload_.empty()) {
      const std::size_t part = std::min(payload_.size(), bytes.size());
      std::memcpy(payload_.data(), bytes.data(), part);
      bytes = bytes.subspan(part);
      put(part);
      continue;
    }
    TUTTI_ASSIGN_OR_RETURN(std::size_t needed, this->needed());
    const std::size_t part = std::min(needed - kept_, bytes.size());
    std::memcpy(kept_bytes_.data() + kept_, bytes.data(), part);
    kept_ += part;
    bytes = bytes.subspan(part);
    if (kept_ < needed) return {};
    TUTTI_ASSIGN_OR_RETURN(needed, this->needed());  // the header says more
    if (kept_ == needed) TUTTI_RETURN_IF_ERROR(act());
  }
  return {};
}

Status FrameReader::act() {
  const FrameHeader header = this->header();
  switch (header.kind) {
    case Kind::slice:
      return begin_slice(header);
    case Kind::line:
      mirror_.take_line(static_cast<int>(header.number),
                        std::span(kept_bytes_).subspan<sizeof(FrameHeader), kLineOnTheWay>());
      break;
    case Kind::count:
      mirror_.take_count(header.channel, header.number);
      break;
    case Kind::abort:
      aborted_rank_ = static_cast<int>(header.number);
      abort_text_.assign(reinterpret_cast<const char*>(kept_bytes_.data()) + sizeof(FrameHeader), header.bytes);
      break;
    case Kind::bye:
      has_left_ = true;
      break;
    case Kind::note:
      take_note_(header.number, std::span(kept_bytes_).subspan<sizeof(FrameHeader), kNoteBytes>());
      break;
  }
  kept_ = 0;
  return {};
}

Status FrameReader::begin_slice(const FrameHeader& header) {
  std::byte* const to = mirror_.payload_of(header.channel, header.number);
  if (to == nullptr) {
    return error(Code::resource, "no memory for a channel of {} slots of {} bytes", mirror_.slots(header.channel),
                 mirror_.slot_bytes(header.channel));
  }
  payload_ = {to, header.bytes - sizeof(SlotHeader)};
  if (payload_.empty()) end_slice();
  return {};
}

void FrameReader::put(std::size_t bytes) {
  payload_ = payload_.subspan(bytes);
  if (payload_.empty()) end_slice();
}

void FrameReader::end_slice() {
  const FrameHeader header = this->header();
  mirror_.take_slice(header.channel, header.number,
                     std::span(kept_bytes_).subspan<sizeof(FrameHeader), sizeof(SlotHeader)>());
  kept_ = 0;
}

}  // namespace tutti::tcp
