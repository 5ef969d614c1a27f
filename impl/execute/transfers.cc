// SPDX-License-Identifier: Apache-2.0
#include "impl/execute/transfers.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

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
               "message {} from {} to {}{}: {} is sent, {} expected; count and dtype must be the same at both ends",
               message.number, message.sender, message.receiver,
               message.tag == 0 ? std::string() : fmt::format(" with tag {}", message.tag), amount(message.sent),
               amount(message.expected));
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
    const int from = direction == Direction::send ? rank_ : peer;
    const int to = direction == Direction::send ? peer : rank_;
    const Status allocated = domain_.allocate({.pair_channels = {{.from = from, .to = to}}});
    if (allocated.is_ok()) end.memory = domain_.pair_channel(from, to);
    if (!allocated.is_ok() && failure_.is_ok()) failure_ = allocated;
    end.link = peer == rank_ ? nullptr : domain_.link(peer);
  }
  return end;
}

Status Transfers::no_memory(int peer) const {
  if (!failure_.is_ok()) return failure_;
  return error(Code::resource, "no memory for a channel of {} slots of {} bytes with {}", slots_, slot_bytes_,
               domain_.name_of(peer));
}

Result<std::uint64_t> Transfers::post(const Request& request) {
  End& end = end_of(request.direction, request.peer);
  if (end.memory.slots == nullptr) return no_memory(request.peer);
  const bool was_idle = end.queue.empty();
  end.queue.push_back(
      {.buffer = request.buffer, .bytes = request.bytes, .done = 0, .dtype = request.dtype, .tag = request.tag});
  const std::uint64_t number = end.completed + end.queue.size() - 1;
  if (!end.early.empty()) [[unlikely]]
    take_up_early(end);
  if (was_idle && !end.queue.empty()) busy_.push_back(&end);
  return number;
}

bool Transfers::is_complete(Direction direction, int peer, std::uint64_t number) const {
  const End& end = ends_.at({direction, peer});
  return number < end.completed || end.queue[static_cast<std::size_t>(number - end.completed)].is_complete;
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
    if (!(end.direction == Direction::send ? send_slice(end, end.queue.front()) : receive_slice(end))) break;
    has_moved = true;
  }
  return has_moved;
}

void Transfers::complete(End& end, Transfer& transfer) {
  transfer.is_complete = true;
  for (; !end.queue.empty() && end.queue.front().is_complete; ++end.completed) end.queue.pop_front();
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
  header.tag = transfer.tag;
  header.message.store(++end.slices, std::memory_order_release);
  if (end.link != nullptr) {
    const bool is_inline = bytes <= static_cast<std::int64_t>(SlotHeader::kInline);
    end.link->publish(ChannelOf::sends, end.slices, is_inline ? 0 : static_cast<std::size_t>(bytes));
  }
  if (transfer.done == transfer.bytes) complete(end, transfer);
  return true;
}

bool Transfers::receive_slice(End& end) {
  SlotHeader& header = slot(end);
  if (header.message.load(std::memory_order_acquire) != end.slices + 1) return false;
  // An early message in part has another tag.
  if (header.tag == end.queue.front().tag) [[likely]]
    return take_slice(end, end.queue.front(), header);
  Transfer* const receive = receive_of(end, header.tag);
  return receive != nullptr ? take_slice(end, *receive, header) : take_early_slice(end, header);
}

Transfers::Transfer* Transfers::receive_of(End& end, std::uint32_t tag) {
  const auto is_it = [tag](const Transfer& one) { return !one.is_complete && one.tag == tag; };
  const auto at = std::ranges::find_if(end.queue, is_it);
  return at == end.queue.end() ? nullptr : &*at;
}

inline void Transfers::empty_slot(End& end, SlotHeader& header, std::byte* to, std::int64_t bytes) {
  if (bytes > 0) std::memcpy(to, payload(header, bytes), static_cast<std::size_t>(bytes));
  end.memory.consumed->store(++end.slices, std::memory_order_release);
  if (end.link != nullptr) end.link->release(ChannelOf::sends, end.slices);
}

bool Transfers::take_slice(End& end, Transfer& transfer, SlotHeader& header) {
  if (header.bytes != static_cast<std::uint64_t>(transfer.bytes) ||
      header.hash != static_cast<std::uint32_t>(transfer.dtype)) {
    fail_on_mismatch(end, transfer,
                     {.bytes = static_cast<std::int64_t>(header.bytes), .dtype = static_cast<Dtype>(header.hash)},
                     end.messages + 1);
    return false;
  }
  const std::int64_t bytes = std::min(slot_bytes_, transfer.bytes - transfer.done);
  empty_slot(end, header, transfer.buffer + transfer.done, bytes);
  transfer.done += bytes;
  if (transfer.done < transfer.bytes) return true;
  ++end.messages;
  complete(end, transfer);
  return true;
}

bool Transfers::take_early_slice(End& end, SlotHeader& header) {
  if (end.early.empty() || end.early.back().is_whole()) {
    Early begun{.bytes = static_cast<std::int64_t>(header.bytes),
                .number = end.messages + 1,
                .dtype = static_cast<Dtype>(header.hash),
                .tag = header.tag};
    begun.content.reset(new (std::nothrow) std::byte[std::max<std::size_t>(header.bytes, 1)]);
    if (begun.content == nullptr) {
      failure_ = error(Code::resource,
                       "no memory to keep message {} from {} to {} with tag {}, of {} bytes, until its "
                       "receive is posted",
                       begun.number, domain_.name_of(end.peer), domain_.name_of(rank_), begun.tag, begun.bytes);
      return false;
    }
    end.early.push_back(std::move(begun));
  }
  Early& early = end.early.back();
  const std::int64_t bytes = std::min(slot_bytes_, early.bytes - early.done);
  empty_slot(end, header, early.content.get() + early.done, bytes);
  early.done += bytes;
  if (early.is_whole()) ++end.messages;
  return true;
}

void Transfers::take_up_early(End& end) {
  Transfer& transfer = end.queue.back();
  const auto early = std::ranges::find(end.early, transfer.tag, &Early::tag);
  if (early == end.early.end()) return;
  if (early->bytes != transfer.bytes || early->dtype != transfer.dtype) {
    return fail_on_mismatch(end, transfer, {.bytes = early->bytes, .dtype = early->dtype}, early->number);
  }
  if (early->done > 0) std::memcpy(transfer.buffer, early->content.get(), static_cast<std::size_t>(early->done));
  transfer.done = early->done;
  end.early.erase(early);
  if (transfer.done == transfer.bytes) complete(end, transfer);
}

Result<Transfers::Probed> Transfers::probe(int peer, std::optional<std::uint32_t> tag) {
  End& end = end_of(Direction::receive, peer);
  if (end.memory.slots == nullptr) return no_memory(peer);
  const auto is_asked_for = [tag](std::uint32_t one) { return !tag || one == *tag; };
  const auto message_of = [](std::uint32_t its_tag, std::int64_t bytes, Dtype dtype) {
    return Message{.tag = static_cast<int>(its_tag), .bytes = bytes, .dtype = dtype};
  };
  for (const Early& early : end.early) {
    if (is_asked_for(early.tag)) return Probed{.message = message_of(early.tag, early.bytes, early.dtype)};
  }
  Probed probed;
  for (std::uint64_t i = 0; i < slots_; ++i) {
    SlotHeader& header = slot(end);
    if (header.message.load(std::memory_order_acquire) != end.slices + 1) break;
    if (receive_of(end, header.tag) != nullptr) break;  // progress has to take it first
    const bool is_begun = !end.early.empty() && !end.early.back().is_whole();
    if (!is_begun && is_asked_for(header.tag)) {
      probed.message = message_of(header.tag, static_cast<std::int64_t>(header.bytes), static_cast<Dtype>(header.hash));
      break;
    }
    if (!take_early_slice(end, header)) return failure_;
    probed.has_moved = true;
  }
  return probed;
}

bool Transfers::cancel(int peer, std::uint64_t number) {
  End& end = ends_.at({Direction::receive, peer});
  if (number < end.completed) return false;
  Transfer& transfer = end.queue[static_cast<std::size_t>(number - end.completed)];
  if (transfer.is_complete || transfer.done > 0) return false;
  complete(end, transfer);
  if (end.queue.empty()) std::erase(busy_, &end);
  return true;
}

void Transfers::fail_on_mismatch(const End& end, const Transfer& transfer, const MismatchedMessage::Size& sent,
                                 std::uint64_t number) {
  failure_ = error_of({.number = number,
                       .sender = domain_.name_of(end.peer),
                       .receiver = domain_.name_of(rank_),
                       .sent = sent,
                       .expected = {.bytes = transfer.bytes, .dtype = transfer.dtype},
                       .tag = transfer.tag});
}

Standing Transfers::standing(Direction direction, int peer, std::uint64_t number) const {
  const End& end = ends_.at({direction, peer});
  const Transfer& transfer = end.queue[static_cast<std::size_t>(number - end.completed)];
  const bool is_send = direction == Direction::send;
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < number - end.completed; ++i) {
    before += !end.queue[i].is_complete && (is_send || end.queue[i].tag == transfer.tag) ? 1 : 0;
  }
  Standing standing{.bytes = transfer.bytes,
                    .done = transfer.done,
                    .before = before,
                    .peer = peer,
                    .wait = is_send ? Wait::send : Wait::receive,
                    .dtype = transfer.dtype,
                    .is_begun = transfer.done > 0,
                    .tag = transfer.tag};
  if (is_send) {  // slices that lie in their slots are not received yet
    const auto slices = static_cast<std::uint64_t>((transfer.done + slot_bytes_ - 1) / slot_bytes_);
    standing.is_begun = end.memory.consumed->load(std::memory_order_acquire) > end.slices - slices;
  }
  return standing;
}

}  // namespace tutti
