// SPDX-License-Identifier: Apache-2.0
// Whether other threads want the core of one that waits. A thread that spins there or yields has no claim to the core;
// one that sleeps and is woken has. So a wait in a crowd sleeps early.
#pragma once

#include <algorithm>
#include <chrono>

namespace tutti {

/// What a waiting thread tells it: when it looks at what it waits for. A long time between two looks went to others.
class CrowdWatch {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  /// `gap`: between two looks, where nothing but the looks took time.
  explicit CrowdWatch(Clock::duration gap) : gap_(gap) {}

  /// A wait begins, or goes on after it did something else.
  void begin(Time now) { looked_ = now; }

  /// The next look of a wait that did nothing else since begin or the look before.
  void look(Time now) {
    if (now - looked_ >= gap_) see(now);
    looked_ = now;
  }

  /// Whether a wait had better sleep.
  [[nodiscard]] bool is_crowded(Time now) const { return now < until_; }

 private:
  /// In a crowd that stays, it takes a gap each time to find that out again. So a crowd is believed in for longer then.
  static constexpr Clock::duration kLeast = std::chrono::milliseconds(20), kMost = std::chrono::seconds(1);

  void see(Time now) {
    if (now < until_) return;
    const bool is_the_same = until_ != Time() && now - until_ < kMost;
    lasts_ = is_the_same ? std::min(2 * lasts_, kMost) : kLeast;
    until_ = now + lasts_;
  }

  Clock::duration gap_;
  Clock::duration lasts_ = kLeast;
  Time looked_, until_;
};

}  // namespace tutti
