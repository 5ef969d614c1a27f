// SPDX-License-Identifier: Apache-2.0
// What a step must be before anybody looks at what it does. Schedules can be made by hand, so lowering and the prover
// ask here first: what a step with a rank that is none would do is not defined.
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

/// What makes `step` no step of this schedule; empty where it is one: rank sets, phases and units in range; a MOVE with
/// destinations and sources, in places where they can be, and with a length; in turn only MOVEs through channels;
/// exposures only of what the schedule's shape says is exposed, for binding places the mirrors, and scratch in the flag
/// line, by the shape alone.
[[nodiscard]] std::string flaw_of(const Schedule& schedule, const Step& step, Place place);

}  // namespace tutti
