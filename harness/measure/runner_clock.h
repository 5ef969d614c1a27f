// SPDX-License-Identifier: Apache-2.0
// The clock of a runner. Its instants are told to other runners, and compared with theirs, on the common clock, which
// is that of runner 0. Runners of one machine read the same clock: for them both are one.
//
// A reading is nothing but a reading. It is converted where it is exchanged, after what is timed: so an offset may be
// found later than the readings that it is for.
#pragma once

#include <cmath>
#include <cstdint>

#include "harness/machine/clock.h"

namespace tutti::harness::measure {

struct RunnerClock {
  std::int64_t lead_ns = 0;  ///< added to each reading: how a test's runner has another clock
  double lead_drift = 0;     ///< and by which that lead grows with each nanosecond from `lead_since_ns` on
  std::int64_t lead_since_ns = 0;
  std::int64_t offset_ns = 0;  ///< the reading less the common instant, when `since_ns` is read
  double drift = 0;            ///< by which the offset grows with each nanosecond from then on
  std::int64_t since_ns = 0;
  std::int64_t doubt_ns = 0;  ///< by which the common instants of two machines may be out of order

  [[nodiscard]] std::int64_t now() const {
    const std::int64_t true_ns = monotonic_ns();
    const std::int64_t grown =
        lead_drift == 0 ? 0 : std::llround(lead_drift * static_cast<double>(true_ns - lead_since_ns));
    return true_ns + lead_ns + grown;
  }
  /// The common instant of a reading; the reading at a common instant.
  [[nodiscard]] std::int64_t common(std::int64_t reading) const {
    return reading - offset_ns - std::llround(drift * static_cast<double>(reading - since_ns));
  }
  [[nodiscard]] std::int64_t here(std::int64_t instant) const {
    const std::int64_t without_drift = instant + offset_ns;
    return without_drift + std::llround(drift / (1 - drift) * static_cast<double>(without_drift - since_ns));
  }
};

/// Of a machine's clock.
struct ClockEstimate {
  std::int64_t offset_ns = 0;  ///< its reading less the common instant
  std::int64_t bound_ns = 0;   ///< half of the round trip
  std::int64_t since_ns = 0;   ///< its reading
};

/// `clock` for readings between two estimates of it.
[[nodiscard]] inline RunnerClock between(const ClockEstimate& before, const ClockEstimate& after, RunnerClock clock) {
  const std::int64_t time_ns = after.since_ns - before.since_ns;
  clock.offset_ns = before.offset_ns;
  clock.since_ns = before.since_ns;
  clock.drift =
      time_ns > 0 ? static_cast<double>(after.offset_ns - before.offset_ns) / static_cast<double>(time_ns) : 0;
  return clock;
}

}  // namespace tutti::harness::measure
