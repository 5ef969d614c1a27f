// SPDX-License-Identifier: Apache-2.0
// The channels of a walk over the steps of all ranks, in units: only those that hold something or are waited for. A
// rank that finds one empty or full is named there, and handed back where that changes.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "impl/prove/arcs.h"
#include "impl/prove/steps.h"

namespace tutti::steps {

class UnitChannels {
 public:
  struct Message {
    std::vector<Sum> values;
    Arcs news;
    std::int64_t clock = 0;
    int step = 0;
    int next = kNone;
  };

  /// Whether there is no message from `from` to `to`; the receiver is then handed back by `push`.
  bool waits_for_message(int from, int to) {
    Channel& channel = channels_[key(from, to)];
    if (channel.full > 0) return false;
    channel.is_read = true;
    return true;
  }
  /// Whether there is no room; the sender is then handed back by `pop`.
  bool waits_for_room(int from, int to, int slots) {
    Channel& channel = channels_[key(from, to)];
    if (channel.full < slots) return false;
    channel.is_awaited = true;
    return true;
  }
  /// The oldest message. Requires: there is one.
  [[nodiscard]] const Message& front(int from, int to) const {
    return messages_[static_cast<std::size_t>(channels_.at(key(from, to)).first)];
  }
  /// Takes the oldest message; whether the sender waits for its room.
  bool pop(int from, int to) {
    const auto found = channels_.find(key(from, to));
    Channel& channel = found->second;
    free_.push_back(channel.first);
    channel.first = messages_[static_cast<std::size_t>(channel.first)].next;
    --channel.full;
    const bool is_awaited = channel.is_awaited;
    channel.is_awaited = false;
    if (channel.full == 0) channels_.erase(found);
    return is_awaited;
  }
  /// A new message, for the caller to fill; sets `is_read` where the receiver waits for it.
  Message& push(int from, int to, bool& is_read) {
    int index = static_cast<int>(messages_.size());
    if (free_.empty()) {
      messages_.emplace_back();
    } else {
      index = free_.back();
      free_.pop_back();
    }
    Message& message = messages_[static_cast<std::size_t>(index)];
    message.next = kNone;
    Channel& channel = channels_[key(from, to)];
    (channel.full == 0 ? channel.first : messages_[static_cast<std::size_t>(channel.last)].next) = index;
    channel.last = index;
    ++channel.full;
    is_read = channel.is_read;
    channel.is_read = false;
    return message;
  }
  [[nodiscard]] int full(int from, int to) const {
    const auto found = channels_.find(key(from, to));
    return found == channels_.end() ? 0 : found->second.full;
  }
  /// Calls f(from, to, step of the sender) for channels that hold a message.
  template <class F>
  void for_full(F f) const {
    for (const auto& [ends, channel] : channels_) {
      if (channel.full == 0) continue;
      f(static_cast<int>(ends >> 32U), static_cast<int>(ends & UINT32_MAX),
        messages_[static_cast<std::size_t>(channel.first)].step);
    }
  }

 private:
  static constexpr int kNone = -1;

  struct Channel {
    int first = kNone;  ///< in messages_
    int last = kNone;
    int full = 0;
    bool is_read = false;     ///< the receiver waits for it
    bool is_awaited = false;  ///< the sender waits for room
  };
  [[nodiscard]] static std::uint64_t key(int from, int to) {
    return static_cast<std::uint64_t>(from) << 32U | static_cast<std::uint32_t>(to);
  }

  std::unordered_map<std::uint64_t, Channel> channels_;
  std::deque<Message> messages_;
  std::vector<int> free_;  ///< in messages_
};

}  // namespace tutti::steps
