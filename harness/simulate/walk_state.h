// SPDX-License-Identifier: Apache-2.0
// What a walk keeps of ranks, messages, interfaces and links.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/floors.h"
#include "impl/schedule/schedule.h"

namespace tutti::harness::simulate {

inline constexpr int kNoMessage = -1;
inline constexpr int kNoRank = -1;

/// What a number of bytes costs.
struct Costs {
  struct OfLink {
    double send = 0, receive = 0, wire = 0;
  };
  std::int64_t units = -1;  ///< -1: not known yet
  OfLink near, far;
  double reduce = 0, copy = 0, read = 0, read_in_cache = 0;
  double handshake = 0;
};

struct Message {
  double arrives = 0;  ///< its last byte
  int next = kNoMessage;
};

struct Channel {
  int first = kNoMessage;
  int last = kNoMessage;
  int waiting = kNoRank;  ///< the receiver, if it waits
};

/// A flag that a rank has set.
struct Flag {
  RankSet to;
  int phase = 0;
  double set = 0;
  int step = 0;  ///< that set it
};

/// What a message's last byte waited for, and which step sent it.
struct Origin {
  int step = 0;
  double sent = 0;
  double latency = 0, wire = 0, links = 0;
};

/// A step that is done, as it is kept for the critical path.
struct Traced {
  int from = kNoRank;  ///< whose message or flag it waited for last
  Origin origin;       ///< of that
  double arrived = 0;  ///< when that was there
  double end = 0;
  double memory = 0, interface = 0;
  std::int64_t units = 0;
};

struct Interface {
  double sends_from = 0;           ///< when it takes the next message
  double receives_from = 0;        ///< when it takes in the next message
  double sends = 0, receives = 0;  ///< for how long
};

struct Link {
  double free_from = 0;
  double busy = 0;
};

struct RankState {
  double clock = 0;
  double ended = 0;  ///< its last step
  int next = 0;      ///< step
  int steps = 0;
  int seen = 0;  ///< flags of a WAIT
  std::vector<Flag> flags;
  std::vector<int> waiting;  ///< ranks that wait for one of its flags
};

}  // namespace tutti::harness::simulate
