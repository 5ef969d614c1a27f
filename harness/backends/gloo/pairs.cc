// SPDX-License-Identifier: Apache-2.0
#include "harness/backends/gloo/pairs.h"

#include <cstring>
#include <gloo/transport/unbound_buffer.h>

namespace tutti::backend_gloo {
namespace {

using Buffer = std::shared_ptr<gloo::transport::UnboundBuffer>;

/// Gloo matches messages of one rank to another by their slot, and within a slot by order. Those of its own collectives
/// are 2^40 and above. What is posted may run later than what is sent, so each has a slot of its own.
enum Slot : std::uint64_t { kMessages = 1, kCollectives = 2, kAcknowledgements = 3 };

Buffer buffer(const Arguments& arguments, std::byte* begin, std::size_t bytes) {
  return arguments.context->createUnboundBuffer(begin, bytes);
}

/// An acknowledgement has no bytes.
Buffer acknowledgement(const Arguments& arguments) { return buffer(arguments, nullptr, 0); }

std::size_t window_bytes(const Arguments& arguments) {
  return arguments.bytes() * static_cast<std::size_t>(arguments.window);
}

/// A window of messages, one after the other in the buffer.
struct Window {
  Buffer buffer;
  int messages;
  std::size_t bytes;  ///< of each
  int partner;

  void start_sends() const {
    for (int i = 0; i < messages; ++i) buffer->send(partner, kCollectives, static_cast<std::size_t>(i) * bytes, bytes);
  }
  void start_receives() const {
    for (int i = 0; i < messages; ++i) buffer->recv(partner, kCollectives, static_cast<std::size_t>(i) * bytes, bytes);
  }
  void wait_for_sends() const {
    for (int i = 0; i < messages; ++i) buffer->waitSend();
  }
  void wait_for_receives() const {
    for (int i = 0; i < messages; ++i) buffer->waitRecv();
  }
};

Window window_at(const Arguments& arguments, std::byte* begin) {
  return {.buffer = buffer(arguments, begin, window_bytes(arguments)),
          .messages = arguments.window,
          .bytes = arguments.bytes(),
          .partner = arguments.partner};
}

void send_and_wait(const Buffer& from, int to, Slot slot) {
  from->send(to, slot);
  from->waitSend();
}

void receive_and_wait(const Buffer& to, int from, Slot slot) {
  to->recv(from, slot);
  to->waitRecv();
}

Call copy(const Arguments& a) {
  return {.start = {}, .finish = [to = a.receive, from = a.send, bytes = a.bytes()] {
            if (bytes > 0) std::memcpy(to, from, bytes);
          }};
}

Call nothing() {
  return {.start = {}, .finish = [] {}};
}

}  // namespace

int partner_in(std::string_view collective, const Seat& seat) {
  const int pairs = seat.ranks / 2;
  if (collective == "message_rate") {
    if (seat.rank >= 2 * pairs) return -1;
    return seat.rank < pairs ? seat.rank + pairs : seat.rank - pairs;
  }
  const int other = seat.rank % 2 == 0 ? seat.rank + 1 : seat.rank - 1;
  return other < seat.ranks ? other : -1;
}

Call send(const Arguments& a) {
  if (a.is_root()) {
    return {.start = [box = a.mailbox, from = a.send, bytes = a.bytes()] { box->send(from, bytes); }, .finish = [] {}};
  }
  const Buffer from = buffer(a, a.send, a.bytes());
  return {.start = [from, to = a.root] { from->send(to, kMessages); }, .finish = [from] { from->waitSend(); }};
}

Call receive(const Arguments& a) {
  if (a.is_root()) return {.start = {}, .finish = [box = a.mailbox, to = a.receive] { box->receive(to); }};
  const Buffer to = buffer(a, a.receive, a.bytes());
  return {.start = [to, from = a.root] { to->recv(from, kMessages); }, .finish = [to] { to->waitRecv(); }};
}

Call sendrecv(const Arguments& a) {
  if (a.seat.ranks == 1) return copy(a);
  const int next = (a.seat.rank + 1) % a.seat.ranks, previous = (a.seat.rank + a.seat.ranks - 1) % a.seat.ranks;
  const Buffer from = buffer(a, a.send, a.bytes()), to = buffer(a, a.receive, a.bytes());
  return {.start = {}, .finish = [=] {
            from->send(next, kCollectives);
            to->recv(previous, kCollectives);
            from->waitSend();
            to->waitRecv();
          }};
}

/// The last of an odd number copies its input.
Call pingpong(const Arguments& a) {
  const int partner = a.partner;
  if (partner < 0) return a.is_one_pair || a.is_in_place ? nothing() : copy(a);
  const Buffer from = buffer(a, a.send, a.bytes()), to = buffer(a, a.receive, a.bytes());
  if (a.seat.rank < partner) {
    return {.start = {}, .finish = [=] {
              send_and_wait(from, partner, kCollectives);
              receive_and_wait(to, partner, kCollectives);
            }};
  }
  return {.start = {}, .finish = [=] {
            receive_and_wait(to, partner, kCollectives);
            send_and_wait(to, partner, kCollectives);
          }};
}

/// The lower rank of a pair sends a window, the other one acknowledges when it has arrived.
Call one_window(const Arguments& a) {
  if (a.partner < 0) return nothing();
  const bool sends = a.seat.rank < a.partner;
  const Window window = window_at(a, sends ? a.send : a.receive);
  const Buffer empty = acknowledgement(a);
  if (sends) {
    return {.start = {}, .finish = [=] {
              window.start_sends();
              window.wait_for_sends();
              receive_and_wait(empty, window.partner, kAcknowledgements);
            }};
  }
  return {.start = {}, .finish = [=] {
            window.start_receives();
            window.wait_for_receives();
            send_and_wait(empty, window.partner, kAcknowledgements);
          }};
}

Call both_windows(const Arguments& a) {
  if (a.partner < 0) return nothing();
  const Window out = window_at(a, a.send), in = window_at(a, a.receive);
  const Buffer mine = acknowledgement(a), other = acknowledgement(a);
  return {.start = {}, .finish = [=] {
            in.start_receives();
            out.start_sends();
            out.wait_for_sends();
            in.wait_for_receives();
            mine->send(out.partner, kAcknowledgements);
            receive_and_wait(other, out.partner, kAcknowledgements);
            mine->waitSend();
          }};
}

}  // namespace tutti::backend_gloo
