// SPDX-License-Identifier: Apache-2.0
// How long the calls of a group took on this rank: by them the ranks tell for whom they wait. Calls end on all ranks at
// about the same time if all ranks do the same in them. So the rank that waited least came last. No clock is compared.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "impl/embed/stragglers.h"

namespace tutti::bindings {

/// Thread-safe.
class CallTimes {
 public:
  /// The last so many calls are kept.
  static constexpr std::size_t kKept = 4096;

  /// A call in microseconds; NaN until it is over.
  struct Time {
    float took = 0;
    float since_last = 0;  ///< from the end of the call before to its own
  };
  static constexpr std::size_t kNumbers = sizeof(Time) / sizeof(float);

  /// A call begins whose ranks all do the same. Returns its number, from 0.
  [[nodiscard]] std::uint64_t begin();
  void end(std::uint64_t number);
  /// Those that are kept, the oldest first.
  [[nodiscard]] std::vector<Time> kept() const;

 private:
  using Clock = std::chrono::steady_clock;

  mutable std::mutex mutex_;
  std::uint64_t begun_ = 0;
  Clock::time_point last_end_ = Clock::now();
  std::vector<Clock::time_point> begins_;  // [number % kKept], as are the times
  std::vector<Time> times_;
};

/// `times[rank * calls + call]`. A call that is not over on each rank does not count.
[[nodiscard]] embed::Arrivals arrivals_of(std::span<const CallTimes::Time> times, int ranks);

}  // namespace tutti::bindings
