// SPDX-License-Identifier: Apache-2.0
// Standstill: the times for which this process itself stood still: it was stopped and continued, or its machine was
// paused. What others did not do meanwhile is no fault of theirs, since most of them stood as well. Pure: it takes
// readings of a clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>

#include "harness/floors.h"

namespace tutti::harness::machine {

class Standstill {
 public:
  /// A process that sleeps goes on that late on a busy machine too; later than this it stood still.
  static constexpr std::chrono::nanoseconds kLeast = std::chrono::seconds(1);

  /// The process was to go on at `due_ns`, and does so at `now_ns`. Returns for how long it stood still; 0: it did not.
  std::chrono::nanoseconds look(std::int64_t due_ns, std::int64_t now_ns);
  /// For how long it stood still after `since_ns`.
  [[nodiscard]] std::chrono::nanoseconds after(std::int64_t since_ns) const;

 private:
  struct Span {
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
  };
  std::deque<Span> spans_;  ///< the last ones
};

}  // namespace tutti::harness::machine
