// SPDX-License-Identifier: Apache-2.0
// Collectives of pairs. What answers a message begins when that has arrived.
#include <cstring>

#include "harness/backends/oneccl/calls.h"

namespace tutti::backend_oneccl {
namespace {

bool begins(const Prepared& p) { return p.group->rank() < p.partner; }

/// The last of an odd number copies its input.
void copy_alone(const Prepared& p) {
  if (!p.is_one_pair && p.send != p.receive && p.bytes() > 0) std::memcpy(p.receive, p.send, p.bytes());
}

void send_window(Prepared& p) {
  for (int i = 0; i < p.window; ++i) {
    send_to(p, p.partner, p.send + static_cast<std::size_t>(i) * p.bytes(), p.count);
  }
}
void receive_window(Prepared& p) {
  for (int i = 0; i < p.window; ++i) {
    receive_from(p, p.partner, p.receive + static_cast<std::size_t>(i) * p.bytes(), p.count);
  }
}

}  // namespace

int partner_in(std::string_view collective, int rank, int ranks) {
  const int pairs = ranks / 2;
  if (collective == "message_rate") return rank >= 2 * pairs ? -1 : rank < pairs ? rank + pairs : rank - pairs;
  const int other = rank % 2 == 0 ? rank + 1 : rank - 1;
  return other < ranks ? other : -1;
}

/// The ring: each rank to the next one.
void sendrecv(Prepared& p) {
  const int ranks = p.group->ranks(), rank = p.group->rank();
  if (ranks == 1) return copy_alone(p);
  send_to(p, (rank + 1) % ranks, p.send, p.count);
  receive_from(p, (rank + ranks - 1) % ranks, p.receive, p.count);
}

void ping(Prepared& p) {
  if (p.partner < 0) return copy_alone(p);
  if (begins(p)) {
    send_to(p, p.partner, p.send, p.count);
  } else {
    receive_from(p, p.partner, p.receive, p.count);
  }
}
void pong(Prepared& p) {
  if (p.partner < 0) return;
  if (begins(p)) {
    receive_from(p, p.partner, p.receive, p.count);
  } else {
    send_to(p, p.partner, p.receive, p.count);
  }
}

/// The lower rank of a pair sends a window, the other one acknowledges when it has arrived.
void one_window(Prepared& p) {
  if (p.partner < 0) return;
  if (begins(p)) {
    send_window(p);
  } else {
    receive_window(p);
  }
}

void both_windows(Prepared& p) {
  if (p.partner < 0) return;
  send_window(p);
  receive_window(p);
}

void acknowledge(Prepared& p) {
  if (p.partner < 0) return;
  const ccl::communicator& world = p.group->communicator;
  const auto send = [&] {
    p.events.push_back(ccl::send(&p.acknowledgement_sent, 1, ccl::datatype::uint8, p.partner, world));
  };
  const auto receive = [&] {
    p.events.push_back(ccl::recv(&p.acknowledgement_received, 1, ccl::datatype::uint8, p.partner, world));
  };
  const bool is_both = p.first == both_windows;
  if (is_both || !begins(p)) send();
  if (is_both || begins(p)) receive();
}

}  // namespace tutti::backend_oneccl
