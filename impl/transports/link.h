// SPDX-License-Identifier: Apache-2.0
// What one rank does to be seen by a rank that shares no memory with it, one of another host. Everything that crosses
// has one writer: the slots of a channel, the receiver's count, a flag line. Each rank has memory of the domain's
// layout. It writes its own part there as it does for a neighbour, and tells the link what is new. The peer's memory
// follows, in the order in which it was told. So the peer reads what is there as if a neighbour had written it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "impl/types/status.h"

namespace tutti {

/// From one rank of a domain to another one, in both directions. Belongs to the rank's thread.
class Link {
 public:
  virtual ~Link() = default;

  /// Slice number `slice`, from 1, of my channel to the peer is in its slot: its header, and `bytes` of payload behind
  /// that. (Those of a message that travels in the header are in it.) The slot is not written before the peer's count
  /// says so.
  virtual void publish(std::uint64_t slice, std::size_t bytes) = 0;
  /// I have released `count` slices of the peer's channel to me. May arrive late: with what goes there anyway, or when
  /// `progress` finds nothing else to do.
  virtual void release(std::uint64_t count) = 0;
  /// My line of this generation is written. What the line holds now is to arrive, its flag last.
  virtual void announce(int generation) = 0;

  /// Sends and takes what it can without waiting; true where something moved.
  virtual bool progress() = 0;
  /// Whether all that was told is out of this rank's hands, so that it may turn to something else for long, or leave.
  [[nodiscard]] virtual bool is_drained() const = 0;
  /// Why nothing will arrive any more, naming the rank that went: aborted, io. It stays.
  [[nodiscard]] virtual const Status& failure() const = 0;
};

}  // namespace tutti
