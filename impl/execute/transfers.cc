// SPDX-License-Identifier: Apache-2.0
#include "impl/execute/transfers.h"

#include <algorithm>
#include <cstring>

namespace tutti {
namespace {

std::byte* payload(SlotHeader& header, std::int64_t bytes) {
  if (bytes <= static_cast<std::int64_t>(SlotHeader::kInline)) return header.payload.data();
  return reinterpret_cast<std::byte*>(&header + 1);
}

std::string amount(const MismatchedMessage::Size& size) {
  return fmt::format("{} {}", size.bytes / static_cast<std::int64_t>(size_of(size.dtype)), to_string(size.dtype));
}

}  // namespace

Status error_of(const MismatchedMessage& message) {
  return error(Code::mismatch,
               "message {} from {} to {}: {} is sent, {} expected; count and dtype must be the same at both ends",
               message.number, message.sender, message.receiver, amount(message.sent), amount(message.expected));
}

Transfers::Transfers(Domain& domain, int rank)
    : domain_(domain),
      rank_(rank),
      slots_(static_cast<std::uint64_t>(domain.shape().pair_slots)),
      slot_bytes_(static_cast<std::int64_t>(domain.shape().pair_slot_bytes)) {}

Transfers::End& Transfers::end_of(Direction direction, int peer) {
  End& end = ends_[{direction, peer}];
  if (end.memory.slots == nullptr) {
    end.direction = direction;
    end.peer = peer;
    end.memory = direction == Direction::send ? domain_.pair_channel(rank_, peer) : domain_.pair_channel(peer, rank_);
    end.link = peer == rank_ ? nullptr : domain_.link(peer);
  }
  return end;
}

Result<std::uint64_t> Transfers::post(const Request& request) {
  End& end = end_of(request.direction, request.peer);
  if (end.memory.slots == nullptr) {
    return error(Code::resource, "no memory for a channel of {} slots of {} bytes with {}", slots_, slot_bytes_,
                 domain_.name_of(request.peer));
  }
  if (end.queue.empty()) busy_.push_back(&end);
  end.queue.push_back({.buffer = request.buffer, .bytes = request.bytes, .done = 0, .dtype = request.dtype});
  return end.completed + end.queue.size() - 1;
}

bool Transfers::is_complete(Direction direction, int peer, std::uint64_t number) const {
  return number < ends_.at({direction, peer}).completed;
}

bool Transfers::progress() {
  bool has_moved = false;
  for (std::size_t i = 0; i < busy_.size() && failure_.is_ok();) {
    has_moved |= progress(*busy_[i]);
    if (busy_[i]->queue.empty()) {
      busy_[i] = busy_.back();
      busy_.pop_back();
    } else {
      ++i;
    }
  }
  return has_moved;
}

bool Transfers::progress(End& end) {
  bool has_moved = false;
  for (std::uint64_t i = 0; i < slots_ && !end.queue.empty(); ++i) {
    Transfer& transfer = end.queue.front();
    if (!(end.direction == Direction::send ? send_slice(end, transfer) : receive_slice(end, transfer))) break;
    ++end.slices;
    has_moved = true;
    if (transfer.done < transfer.bytes) continue;
    end.queue.pop_front();
    ++end.completed;
  }
  return has_moved;
}

SlotHeader& Transfers::slot(const End& end) const {
  const std::uint64_t stride = sizeof(SlotHeader) + static_cast<std::uint64_t>(slot_bytes_);
  return *reinterpret_cast<SlotHeader*>(end.memory.slots + end.slices % slots_ * stride);
}

bool Transfers::send_slice(End& end, Transfer& transfer) {
  if (end.slices - end.consumed_seen >= slots_) {
    end.consumed_seen = end.memory.consumed->load(std::memory_order_acquire);
    if (end.slices - end.consumed_seen >= slots_) return false;
  }
  SlotHeader& header = slot(end);
  const std::int64_t bytes = std::min(slot_bytes_, transfer.bytes - transfer.done);
  if (bytes > 0) std::memcpy(payload(header, bytes), transfer.buffer + transfer.done, static_cast<std::size_t>(bytes));
  transfer.done += bytes;
  header.bytes = static_cast<std::uint64_t>(transfer.bytes);
  header.hash = static_cast<std::uint32_t>(transfer.dtype);
  header.message.store(end.slices + 1, std::memory_order_release);
  if (end.link != nullptr) {
    const bool is_inline = bytes <= static_cast<std::int64_t>(SlotHeader::kInline);
    end.link->publish(ChannelOf::sends, end.slices + 1, is_inline ? 0 : static_cast<std::size_t>(bytes));
  }
  return true;
}

bool Transfers::receive_slice(End& end, Transfer& transfer) {
  SlotHeader& header = slot(end);
  if (header.message.load(std::memory_order_acquire) != end.slices + 1) return false;
  if (header.bytes != static_cast<std::uint64_t>(transfer.bytes) ||
      header.hash != static_cast<std::uint32_t>(transfer.dtype)) {
    fail_on_mismatch(end, transfer, header);
    return false;
  }
  const std::int64_t bytes = std::min(slot_bytes_, transfer.bytes - transfer.done);
  if (bytes > 0) std::memcpy(transfer.buffer + transfer.done, payload(header, bytes), static_cast<std::size_t>(bytes));
  transfer.done += bytes;
  end.memory.consumed->store(end.slices + 1, std::memory_order_release);
  if (end.link != nullptr) end.link->release(ChannelOf::sends, end.slices + 1);
  return true;
}

void Transfers::fail_on_mismatch(const End& end, const Transfer& transfer, const SlotHeader& header) {
  failure_ =
      error_of({.number = end.completed + 1,
                .sender = domain_.name_of(end.peer),
                .receiver = domain_.name_of(rank_),
                .sent = {.bytes = static_cast<std::int64_t>(header.bytes), .dtype = static_cast<Dtype>(header.hash)},
                .expected = {.bytes = transfer.bytes, .dtype = transfer.dtype}});
}

Standing Transfers::standing(Direction direction, int peer, std::uint64_t number) const {
  const End& end = ends_.at({direction, peer});
  const Transfer& transfer = end.queue[static_cast<std::size_t>(number - end.completed)];
  const bool is_send = direction == Direction::send;
  Standing standing{.bytes = transfer.bytes,
                    .done = transfer.done,
                    .before = number - end.completed,
                    .peer = peer,
                    .wait = is_send ? Wait::send : Wait::receive,
                    .dtype = transfer.dtype,
                    .is_begun = transfer.done > 0};
  if (is_send) {  // slices that lie in their slots are not received yet
    const auto slices = static_cast<std::uint64_t>((transfer.done + slot_bytes_ - 1) / slot_bytes_);
    standing.is_begun = end.memory.consumed->load(std::memory_order_acquire) > end.slices - slices;
  }
  return standing;
}

}  // namespace tutti
