// SPDX-License-Identifier: Apache-2.0
// What disturbed a measurement while it ran: of what `tutti doctor` warns of, that which was seen meanwhile. Read
// before and after a cell, outside everything that is timed; judging is apart from reading, and pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/machine/tree.h"

namespace tutti::harness::machine {

/// What the kernel has counted of some cores so far. What it does not tell is 0, or empty.
struct CoresCounted {
  std::int64_t at_ns = 0;                ///< when
  double all_s = 0;                      ///< time of all of them
  double busy_s = 0;                     ///< with whatever ran here
  double stolen_s = 0;                   ///< that went to other machines of the host
  std::int64_t stopped = 0;              ///< periods in which the cgroup's quota was used up
  std::int64_t hot = 0;                  ///< times that a core was slowed down for its heat
  std::optional<double> clock_khz = {};  ///< mean of the cores now
};
[[nodiscard]] CoresCounted count_cores(const Tree& tree, const std::vector<int>& cores);

/// What the kernel has counted of a thread so far.
struct ThreadCounted {
  double used_s = 0;          ///< of cores
  std::int64_t switches = 0;  ///< times that it was taken off its core
};
/// Of the calling one.
[[nodiscard]] ThreadCounted count_this_thread();

/// A measurement as it was seen from outside.
struct Watched {
  CoresCounted before, after;      ///< of the cores of all ranks
  double used_s = 0;               ///< by all ranks meanwhile, and by the crowd that was asked for
  std::int64_t most_switches = 0;  ///< of a rank meanwhile
  bool ranks_share_cores = false;  ///< they are then taken off them as they should
};

/// Adds what one rank's thread has counted meanwhile.
void add_thread(Watched& watched, const ThreadCounted& before, const ThreadCounted& after);

inline constexpr double kMostStolen = 0.01;  ///< of the cores' time
inline constexpr double kMostOthers = 0.1;   ///< of the cores' time, used by others than the ranks
/// Up to 500 a second changed no time by more than its interval; from 1000 on that of 1 MiB, from 4000 on every one
/// (results/2026-11-switches). A launcher that looks and a kernel with something else to do make 20 to 120.
inline constexpr double kMostSwitchesPerSecond = 500;
/// Fewer hit too few of the 30 samples or more that a median is of; in a short cell they would be many a second.
inline constexpr std::int64_t kLeastSwitches = 10;
inline constexpr double kMostClockChange = 0.05;

/// Words of `tutti doctor`, separated by "; ": load, steal, switches, quota, heat, clock.
[[nodiscard]] std::string disturbances_of(const Watched& watched);

}  // namespace tutti::harness::machine
