// SPDX-License-Identifier: Apache-2.0
// A rank's sends and receives. Each posted one is a lane of its own: a resumable state that is polled until done. They
// have channels of their own, one per ordered pair, and are matched in post order per pair, direction and tag. A sender
// works its queue off oldest first. A receiver gives each message to the oldest receive with its tag. Where receives
// with other tags wait for what comes behind it, a message without a receive is kept here: it is early. Nothing here
// waits for a collective or keeps one waiting.
//
// A message is cut into slices of a slot each. Every slice's header says the length of the whole message and its dtype;
// a receiver that expects others ends with mismatch. A send is complete when the last slice lies in its slot: its
// buffer may then be written, whether or not the receiver has come.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "impl/execute/message.h"
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
  std::uint32_t tag = 0;
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
    std::uint32_t tag = 0;
  };

  Transfers(Domain& domain, int rank);

  /// Its number in its queue, from 0. Errors: resource, of the first one with a rank of another host.
  [[nodiscard]] Result<std::uint64_t> post(const Request& request);
  [[nodiscard]] bool is_complete(Direction direction, int peer, std::uint64_t number) const;
  [[nodiscard]] bool is_idle() const { return busy_.empty(); }
  /// Moves what can be moved at once; true when anything was.
  bool progress();
  struct Probed {
    std::optional<Message> message;
    bool has_moved = false;  ///< what came before it is kept here now
  };
  /// The oldest message from `peer` that no posted receive takes: with this tag, or with any. Errors: resource.
  [[nodiscard]] Result<Probed> probe(int peer, std::optional<std::uint32_t> tag);
  /// Takes a receive back of which nothing has come: it is complete then. False where it is too late.
  [[nodiscard]] bool cancel(int peer, std::uint64_t number);
  /// Empty, or why nothing can go on (mismatch naming both sides, resource).
  [[nodiscard]] const Status& failure() const { return failure_; }
  /// Where a transfer that is not complete stands, for reports.
  [[nodiscard]] Standing standing(Direction direction, int peer, std::uint64_t number) const;

 private:
  struct Transfer {
    std::byte* buffer;
    std::int64_t bytes;
    std::int64_t done;  ///< bytes moved
    Dtype dtype;
    std::uint32_t tag;
    bool is_complete = false;  ///< and a receive before it is not
  };
  /// A message that has come, in whole or in part, and has no receive yet.
  struct Early {
    std::unique_ptr<std::byte[]> content;
    std::int64_t bytes = 0;
    std::int64_t done = 0;
    std::uint64_t number = 0;  ///< among those from its sender, from 1
    Dtype dtype = Dtype::f32;
    std::uint32_t tag = 0;
    [[nodiscard]] bool is_whole() const { return done == bytes; }
  };
  /// My end of one direction to or from a peer.
  struct End {
    Direction direction = Direction::send;
    int peer = 0;
    ChannelMemory memory;
    std::uint64_t slices = 0;         ///< sent or received so far
    std::uint64_t consumed_seen = 0;  ///< sender: the receiver's count when last read
    std::uint64_t completed = 0;      ///< transfers up to the first that is not complete
    std::uint64_t messages = 0;       ///< receiver: those that have come in whole
    Link* link = nullptr;             ///< to the peer; null where it shares this memory
    std::deque<Transfer> queue;       ///< from the first on that is not complete
    std::deque<Early> early;          ///< oldest first; no posted receive has the tag of one. The last may be in part
  };

  [[nodiscard]] End& end_of(Direction direction, int peer);
  [[nodiscard]] Status no_memory(int peer) const;
  [[nodiscard]] SlotHeader& slot(const End& end) const;
  /// Works the queue off as far as slots allow, a channel's worth of slices at most; true when anything moved.
  bool progress(End& end);
  bool send_slice(End& end, Transfer& transfer);
  bool receive_slice(End& end);
  /// Takes a slice that is there for a receive, or as a part of an early message.
  bool take_slice(End& end, Transfer& transfer, SlotHeader& header);
  bool take_early_slice(End& end, SlotHeader& header);
  /// The oldest posted receive with that tag; null where there is none.
  [[nodiscard]] static Transfer* receive_of(End& end, std::uint32_t tag);
  /// The slot's payload goes to `to`; the slot is free then.
  void empty_slot(End& end, SlotHeader& header, std::byte* to, std::int64_t bytes);
  /// The newest receive takes the oldest early message with its tag.
  void take_up_early(End& end);
  void complete(End& end, Transfer& transfer);
  void fail_on_mismatch(const End& end, const Transfer& transfer, const MismatchedMessage::Size& sent,
                        std::uint64_t number);

  Domain& domain_;
  int rank_;
  std::uint64_t slots_;
  std::int64_t slot_bytes_;
  std::map<std::pair<Direction, int>, End> ends_;  // of the pairs in use; references to them hold
  std::vector<End*> busy_;                         // those with a queue
  Status failure_;
};

}  // namespace tutti
