// SPDX-License-Identifier: Apache-2.0
// A rank's sends and receives. Each posted one is a lane of its own: a resumable state that is polled until done. They
// have channels of their own, one per ordered pair, and are matched in post order per pair and direction. At each end
// of a channel a queue of transfers is worked off, oldest first. Nothing here waits for a collective or keeps one
// waiting.
//
// A message is cut into slices of a slot each. Every slice's header says the length of the whole message and its dtype;
// a receiver that expects others ends with mismatch. A send is complete when the last slice lies in its slot: its
// buffer may then be written, whether or not the receiver has come.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "impl/transports/domain.h"
#include "impl/transports/journal.h"
#include "impl/transports/link.h"
#include "impl/types/dtype.h"
#include "impl/types/status.h"

namespace tutti {

enum class Direction : std::uint8_t { send, receive };

/// A message whose ends do not mean the same.
struct MismatchedMessage {
  struct Size {
    std::int64_t bytes = 0;
    Dtype dtype = Dtype::f32;
  };
  std::uint64_t number = 1;  ///< of those from its sender to its receiver, from 1
  std::string sender;        ///< their names
  std::string receiver;
  Size sent;
  Size expected;
};
[[nodiscard]] Status error_of(const MismatchedMessage& message);

class Transfers {
 public:
  struct Request {
    Direction direction = Direction::send;
    int peer = 0;
    std::byte* buffer = nullptr;  ///< of a send: not written
    std::int64_t bytes = 0;
    Dtype dtype = Dtype::f32;
  };

  Transfers(Domain& domain, int rank);

  /// Its number in its queue, from 0. Errors: resource, of the first one with a rank of another host.
  [[nodiscard]] Result<std::uint64_t> post(const Request& request);
  [[nodiscard]] bool is_complete(Direction direction, int peer, std::uint64_t number) const;
  [[nodiscard]] bool is_idle() const { return busy_.empty(); }
  /// Moves what can be moved at once; true when anything was.
  bool progress();
  /// Empty, or why nothing can go on (mismatch naming both sides).
  [[nodiscard]] const Status& failure() const { return failure_; }
  /// Where a transfer that is not complete stands, for reports.
  [[nodiscard]] Standing standing(Direction direction, int peer, std::uint64_t number) const;

 private:
  struct Transfer {
    std::byte* buffer;
    std::int64_t bytes;
    std::int64_t done;  ///< bytes moved
    Dtype dtype;
  };
  /// My end of one direction to or from a peer.
  struct End {
    Direction direction = Direction::send;
    int peer = 0;
    ChannelMemory memory;
    std::uint64_t slices = 0;         ///< sent or received so far
    std::uint64_t consumed_seen = 0;  ///< sender: the receiver's count when last read
    std::uint64_t completed = 0;      ///< transfers
    Link* link = nullptr;             ///< to the peer; null where it shares this memory
    std::deque<Transfer> queue;       ///< those under way, oldest first
  };

  [[nodiscard]] End& end_of(Direction direction, int peer);
  [[nodiscard]] SlotHeader& slot(const End& end) const;
  /// Works the queue off as far as slots allow, a channel's worth of slices at most; true when anything moved.
  bool progress(End& end);
  bool send_slice(End& end, Transfer& transfer);
  bool receive_slice(End& end, Transfer& transfer);
  void fail_on_mismatch(const End& end, const Transfer& transfer, const SlotHeader& header);

  Domain& domain_;
  int rank_;
  std::uint64_t slots_;
  std::int64_t slot_bytes_;
  std::map<std::pair<Direction, int>, End> ends_;  // of the pairs in use; references to them hold
  std::vector<End*> busy_;                         // those with a queue
  Status failure_;
};

}  // namespace tutti
