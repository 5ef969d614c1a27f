// SPDX-License-Identifier: Apache-2.0
// The links of a rank on a pretended host. Frames wait in a queue for each ordered pair of ranks, and the receiver
// takes from it as its seed says. Any thread may have either end.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include "impl/transports/fake/domain.h"
#include "impl/transports/hosts_domain.h"

namespace tutti::fake {

struct Frame {
  enum class Kind : std::uint8_t { slice, count, line, abort, bye };
  Kind kind = Kind::slice;
  ChannelOf channel = ChannelOf::collectives;
  std::uint64_t number = 0;              ///< slice, count, generation, rank
  std::span<const std::byte> slot = {};  ///< of a slice: read when it is delivered
  std::vector<std::byte> bytes = {};     ///< of a line; of a slice whose sender has left
};

/// What is on its way from one rank to another.
class Queue {
 public:
  void push(Frame frame);
  /// The sender's slots are about to go: what is under way is copied.
  void detach();
  [[nodiscard]] bool is_empty() const { return waiting_.load(std::memory_order_acquire) == 0; }
  /// Up to `most` frames, oldest first; `take` gets each while the sender's slot holds.
  template <class Take>
  bool pull(int most, Take take) {
    if (waiting_.load(std::memory_order_acquire) == 0) return false;
    const std::lock_guard lock(mutex_);
    for (; most > 0 && !frames_.empty(); --most) {
      if (!take(frames_.front())) continue;
      frames_.pop_front();
      waiting_.fetch_sub(1, std::memory_order_relaxed);
    }
    return true;
  }

 private:
  std::mutex mutex_;
  std::deque<Frame> frames_;
  std::atomic<int> waiting_ = 0;
};

/// The queues of all ordered pairs of a world's ranks; and those of its groups, until each of their ranks has them.
class Air {
 public:
  explicit Air(int ranks) : ranks_(ranks), queues_(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks)) {}
  [[nodiscard]] Queue& queue(int from, int to) {
    return queues_[static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks_) + static_cast<std::size_t>(to)];
  }
  /// A number that no other group of the world has.
  [[nodiscard]] std::uint64_t draw_group() { return ++groups_drawn_; }
  /// That of a group of `ranks`, each of which asks once.
  [[nodiscard]] std::shared_ptr<Air> of_group(std::uint64_t number, int ranks);

 private:
  struct OfGroup {
    std::shared_ptr<Air> air;
    int left = 0;  ///< ranks that have not asked yet
  };
  int ranks_;
  std::vector<Queue> queues_;
  std::atomic<std::uint64_t> groups_drawn_ = 0;
  std::mutex mutex_;
  std::map<std::uint64_t, OfGroup> groups_;
};

[[nodiscard]] std::unique_ptr<Network> make_network(const std::shared_ptr<Air>& air, const Outlook& outlook,
                                                    const Weather& weather);
/// Of a group of ranks of `world`.
[[nodiscard]] std::unique_ptr<Network> make_group_network(const std::shared_ptr<Air>& world, const Outlook& outlook,
                                                          const Weather& weather);

}  // namespace tutti::fake
