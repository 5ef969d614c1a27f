// SPDX-License-Identifier: Apache-2.0
// A group of ranks: Gloo's connections between them, and the threads for what was posted on it.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <gloo/rendezvous/context.h>
#include <gloo/transport/device.h>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "harness/backends/gloo/lane.h"
#include "harness/backends/gloo/store.h"

namespace tutti::backend_gloo {

using Device = std::shared_ptr<gloo::transport::Device>;
/// What all groups of a process share: a thread, and sockets at `address`. Throws.
[[nodiscard]] Device make_device(const std::string& address);

struct Seat {
  int rank = 0;
  int ranks = 1;
};

/// Messages of a rank to itself. Gloo connects no rank with itself, so they are copied.
class Mailbox {
 public:
  void send(const std::byte* from, std::size_t bytes);
  /// Waits for the next one.
  void receive(std::byte* to);

 private:
  std::mutex mutex_;
  std::condition_variable sent_;
  std::deque<std::vector<std::byte>> messages_;
};

class Group {
 public:
  /// Connects all ranks with each other, which hand each other their addresses by `exchange`. Collective. Throws.
  Group(Device device, const Seat& seat, const Exchange& exchange);

  /// As split of backend.h; null where the colour is below 0. Collective. Throws.
  [[nodiscard]] std::unique_ptr<Group> split(int colour, int key);
  /// Waits until every rank is there: one that disconnects would disturb those that are still at work. Throws.
  void meet();

  [[nodiscard]] const Seat& seat() const { return seat_; }
  [[nodiscard]] const std::shared_ptr<gloo::Context>& context() const { return context_; }
  [[nodiscard]] Mailbox& mailbox() { return mailbox_; }

  /// A lane for each order in which calls complete: collectives, messages to each rank, and messages from each.
  [[nodiscard]] std::size_t lane_of_collectives() const { return 0; }
  [[nodiscard]] std::size_t lane_to(int rank) const { return 1 + static_cast<std::size_t>(rank); }
  [[nodiscard]] std::size_t lane_from(int rank) const { return lane_to(seat_.ranks + rank); }
  /// It is made when it is first asked for.
  [[nodiscard]] Lane& lane(std::size_t index);
  [[nodiscard]] bool is_idle(std::size_t index) const { return lanes_[index] == nullptr || lanes_[index]->is_idle(); }

 private:
  /// Every member's text, by the place among the members. Members are ranks of this group.
  [[nodiscard]] std::vector<std::string> exchange_among(const std::vector<int>& members, const std::string& mine);

  Device device_;
  Seat seat_;
  std::shared_ptr<gloo::Context> context_;
  Mailbox mailbox_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace tutti::backend_gloo
