// SPDX-License-Identifier: Apache-2.0
// What one rank does to be seen by a rank that shares no memory with it, one of another host. Everything that crosses
// has one writer: the slots of a channel, the receiver's count, a flag line. The rank writes its side as it does for a
// neighbour, and tells the link what is new. The other rank's copy (mirror.h) follows, in the order in which it was
// told. So the other rank reads what is there as if a neighbour had written it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "impl/types/status.h"

namespace tutti {

/// The two channels of an ordered pair of ranks: that of collectives, and that of sends and receives.
enum class ChannelOf : std::uint8_t { collectives, sends };
inline constexpr std::size_t kChannelsOfPair = 2;

/// From one rank to another one. Belongs to the rank's thread, as its network does.
class Link {
 public:
  virtual ~Link() = default;

  /// Slice number `slice`, from 1, of my channel to the peer is in its slot: its header, and `bytes` of payload behind
  /// that. (Those of a message that travels in the header are in it.) The slot is not written before the peer's count
  /// says so.
  virtual void publish(ChannelOf channel, std::uint64_t slice, std::size_t bytes) = 0;
  /// I have released `count` slices of the peer's channel to me. May arrive late: with what goes there anyway, or when
  /// the network is idle.
  virtual void release(ChannelOf channel, std::uint64_t count) = 0;
  /// My line of this generation is written. What the line holds now is to arrive, its flag last.
  virtual void announce(int generation) = 0;
};

/// Whether the rank that asks has found something to do.
enum class Mood : std::uint8_t { busy, idle };

/// All links of one rank. Nothing here waits, but the destructor does, for a bounded time.
class Network {
 public:
  virtual ~Network() = default;

  /// Where the others find this rank; empty where they need not be told.
  [[nodiscard]] virtual const std::string& address() const = 0;
  /// Of all ranks, before the first link is used.
  virtual void set_addresses(std::vector<std::string> addresses) = 0;

  /// To a rank that shares no memory with this one.
  [[nodiscard]] virtual Link& link(int rank) = 0;
  /// Takes what has come; true where something has.
  virtual bool receive() = 0;
  /// Sends what is owed; when idle also what may be told late. True where something went.
  virtual bool send(Mood mood) = 0;
  /// Whether all that was told, but for what may be told late, is out of this rank's hands, so that it may turn to
  /// something else for long.
  [[nodiscard]] virtual bool is_drained() const = 0;
  /// Whether it is known that another look brings nothing, unless another rank goes on: for a simulation, which tells
  /// ranks that stand still from ranks that wait for the weather.
  [[nodiscard]] virtual bool is_quiet() const { return false; }
  /// Why something will not arrive any more, naming the rank that went: aborted, io. It stays.
  [[nodiscard]] virtual const Status& failure() const = 0;
  /// The rank that the failure is about; -1 while there is none.
  [[nodiscard]] virtual int failed_rank() const = 0;
  /// Whether that rank, of another host, went without a goodbye. Of a world's network: its process is no more.
  [[nodiscard]] virtual bool has_gone(int /*rank*/) const { return false; }
  /// It is known from elsewhere that the process of that rank, of another host, is no more.
  virtual void lose(int rank) = 0;
  /// Readable when something has come, for ranks that sleep; -1: there is none, and the rank must look.
  [[nodiscard]] virtual int descriptor() const { return -1; }
  /// This rank's communicator has failed because `of` did, another rank or itself: those that have a link with it are
  /// to stop too, and name that rank.
  /// `text` is how all name the failure.
  virtual void abort(int of, const std::string& text) = 0;
};

}  // namespace tutti
