// SPDX-License-Identifier: Apache-2.0
// Collectives of pairs. What answers a message follows it on the stream, in a group of NCCL of its own.
#include "harness/backends/nccl/calls.h"

namespace tutti::backend_nccl {
namespace {

int next(const Group& group) { return (group.rank + 1) % group.ranks; }
int previous(const Group& group) { return (group.rank + group.ranks - 1) % group.ranks; }

/// Makes the next call when NCCL takes it.
template <class Call>
Answer then(const Prepared& p, Answer answer, Call call) {
  answer = p.world->settle(p.group->comm, answer);
  return answer == kSuccess ? call() : answer;
}

Answer send_window(const Prepared& p) {
  Answer answer = kSuccess;
  for (int message = 0; message < p.window && answer == kSuccess; ++message) {
    answer = send_to(p, p.partner, p.send + static_cast<std::size_t>(message) * p.bytes(), p.count);
  }
  return answer;
}
Answer receive_window(const Prepared& p) {
  Answer answer = kSuccess;
  for (int message = 0; message < p.window && answer == kSuccess; ++message) {
    answer = receive_from(p, p.partner, p.receive + static_cast<std::size_t>(message) * p.bytes(), p.count);
  }
  return answer;
}

// An acknowledgement is a byte of the spare memory. Where two pass each other, each arrives in another one.
Answer send_acknowledgement(const Prepared& p) {
  return p.nccl->ncclSend(p.group->spare, 1, kUint8, p.partner, p.group->comm, p.stream);
}
Answer receive_acknowledgement(const Prepared& p) {
  return p.nccl->ncclRecv(static_cast<std::byte*>(p.group->spare) + kSpareBytes / 2, 1, kUint8, p.partner,
                          p.group->comm, p.stream);
}

}  // namespace

int partner_in(std::string_view collective, int rank, int ranks) {
  const int pairs = ranks / 2;
  if (collective == "message_rate") return rank >= 2 * pairs ? -1 : rank < pairs ? rank + pairs : rank - pairs;
  const int other = rank % 2 == 0 ? rank + 1 : rank - 1;
  return other < ranks ? other : -1;
}

/// The ring: each rank to the next one.
Answer sendrecv(const Prepared& p) {
  return together(p, [&p] {
    const Answer answer = send_to(p, next(*p.group), p.send, p.count);
    return answer != kSuccess ? answer : receive_from(p, previous(*p.group), p.receive, p.count);
  });
}

/// Even ranks with the next one, unless one pair plays alone; the last of an odd number with itself, so that its input
/// is copied too.
Answer pingpong(const Prepared& p) {
  if (p.partner < 0) {
    if (p.is_one_pair || p.send == p.receive) return kSuccess;
    return together(p, [&p] {
      const Answer answer = send_to(p, p.group->rank, p.send, p.count);
      return answer != kSuccess ? answer : receive_from(p, p.group->rank, p.receive, p.count);
    });
  }
  if (p.group->rank < p.partner) {
    return then(p, send_to(p, p.partner, p.send, p.count),
                [&p] { return receive_from(p, p.partner, p.receive, p.count); });
  }
  return then(p, receive_from(p, p.partner, p.receive, p.count),
              [&p] { return send_to(p, p.partner, p.receive, p.count); });
}

/// The lower rank of a pair sends a window, the other one acknowledges when it has arrived.
Answer one_window(const Prepared& p) {
  if (p.partner < 0) return kSuccess;
  if (p.group->rank < p.partner) {
    return then(p, together(p, [&p] { return send_window(p); }), [&p] { return receive_acknowledgement(p); });
  }
  return then(p, together(p, [&p] { return receive_window(p); }), [&p] { return send_acknowledgement(p); });
}

Answer both_windows(const Prepared& p) {
  if (p.partner < 0) return kSuccess;
  const Answer windows = together(p, [&p] {
    const Answer answer = receive_window(p);
    return answer != kSuccess ? answer : send_window(p);
  });
  return then(p, windows, [&p] {
    return together(p, [&p] {
      const Answer answer = send_acknowledgement(p);
      return answer != kSuccess ? answer : receive_acknowledgement(p);
    });
  });
}

}  // namespace tutti::backend_nccl
