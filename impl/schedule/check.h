// SPDX-License-Identifier: Apache-2.0
// What a step must be before anybody looks at what it does. Schedules can be made by hand, so lowering and the prover
// ask here first: what a step with a wrong rank would do is not defined.
#pragma once

#include <string>

#include "impl/schedule/schedule.h"

namespace tutti {

/// The largest phase that a flag can hold.
inline constexpr int kMostPhase = 65535;

/// first in [0, P); n in [0, P]; stride in [0, P) where there is a second rank.
[[nodiscard]] bool is_in_range(const RankSet& set, int ranks);

/// `the ranks {first 0, stride 7, n 2}, on 3 ranks: first and stride are 0 to 2, n is 0 to 3`
[[nodiscard]] std::string describe_range(const RankSet& set, int ranks);

/// Where a step stands in its rank's program.
struct Place {
  bool is_in_turn_with_previous = false;
  bool is_last = false;
};

/// The flaw of `step` in this schedule; empty where it has no flaw. Rank sets, phases and units must be in range. A
/// MOVE must have destinations and sources, in places where they can be, and a length. Only MOVEs through channels may
/// take turns. Only what the schedule's shape says is exposed may be exposed: by the shape alone, binding places the
/// mirrors, and scratch in the flag line.
[[nodiscard]] std::string flaw_of(const Schedule& schedule, const Step& step, Place place);

}  // namespace tutti
