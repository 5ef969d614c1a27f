// SPDX-License-Identifier: Apache-2.0
// The clocks: CLOCK_MONOTONIC, which all samples are read from, what it can tell apart and what a reading costs; and
// the time of day.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "harness/floors.h"

namespace tutti::harness::machine {

/// CLOCK_MONOTONIC: the same in all processes of the machine.
[[nodiscard]] std::int64_t monotonic_ns();

/// CLOCK_REALTIME, since 1970: what a host takes for the time of day.
[[nodiscard]] std::int64_t time_of_day_ns();

/// Now, as `2025-01-31T12:00:00Z`.
[[nodiscard]] std::string utc_now();

struct ClockFacts {
  double tick_ns = 1;  ///< readings differ by about a multiple of it
  double read_ns = 0;  ///< the median time from one reading to the next
};

/// From differences of successive readings, in nanoseconds, at least one. A clock counts ticks, and rounding to whole
/// nanoseconds blurs them: values one apart are one tick. The tick is the least distance of two such groups, each with
/// at least 1 % of the differences; 1 where there is one group.
[[nodiscard]] ClockFacts clock_facts_of(std::span<const std::int64_t> differences);

/// Of CLOCK_MONOTONIC, read 10,000 times in a row.
[[nodiscard]] ClockFacts measure_clock();

}  // namespace tutti::harness::machine
