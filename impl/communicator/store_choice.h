// SPDX-License-Identifier: Apache-2.0
// Whether data goes to scratch by plain or by non-temporal stores: decided by trial, again and again.
//
// Which is faster depends on how long a line takes from core to core, and on virtual machines that changes within
// minutes. Where a line takes long, a plain store loses: it first fetches the line that the peer read last. Where it
// takes 0.1 us, plain stores win, because the peer then finds the data in a cache. So of every kCycle segments of a
// call, a few are tried in each way and the others take the faster one.
//
// All ranks make the same calls, so they try alike and at the same time. Each tells the others what the trials cost it,
// and all take the way in which the slowest rank was faster. The root of a broadcast does not see what its stores cost
// the readers.
#pragma once

#include <algorithm>
#include <array>
#include <limits>

namespace tutti {

/// Time per byte, by way: plain, streamed.
using StoreCosts = std::array<float, 2>;

class StoreChoice {
 public:
  static constexpr int kTrials = 8;  ///< of each way
  /// Of these, the first use each generation's scratch for the first time since something else had the caches.
  static constexpr int kUncounted = 5;
  static constexpr int kTrialsEnd = 2 * kTrials;
  static constexpr int kDecision = kTrialsEnd + 8;  ///< by then all have told: nobody is K segments ahead of another
  static constexpr int kCycle = 512;

  /// Whether the segment at hand streams.
  [[nodiscard]] bool streams() const { return is_trial() ? at_ >= kTrials : is_streaming_faster_; }
  /// There are no trials, and all segments take this way: on all ranks alike.
  void fix(bool streams) {
    is_fixed_ = true;
    is_streaming_faster_ = streams;
  }
  /// Whether `finish` wants its time.
  [[nodiscard]] bool is_trial() const { return !is_fixed_ && at_ < kTrialsEnd; }
  /// After `finish`: the trials have just ended, and the others want to know their costs.
  [[nodiscard]] bool is_to_be_told() const { return at_ == kTrialsEnd; }
  /// After `finish`: `decide` is due.
  [[nodiscard]] bool is_due() const { return at_ == kDecision; }
  /// What the trials cost here.
  [[nodiscard]] const StoreCosts& costs() const { return least_; }

  /// The segment at hand is complete; `cost` is its time per byte if it was a trial. Late ranks only ever add to it, so
  /// the least counts.
  void finish(float cost) {
    if (is_fixed_) return;
    if (is_trial()) {
      float& least = least_[streams() ? 1 : 0];
      least = at_ % kTrials < kUncounted ? std::numeric_limits<float>::infinity() : std::min(least, cost);
    }
    if (++at_ == kCycle) at_ = 0;
  }
  /// `costs` are those of the slowest rank in each way.
  void decide(const StoreCosts& costs) { is_streaming_faster_ = costs[1] < costs[0]; }

 private:
  int at_ = 0;  ///< segment of the cycle
  bool is_fixed_ = false;
  bool is_streaming_faster_ = false;
  StoreCosts least_{};
};

}  // namespace tutti
