// SPDX-License-Identifier: Apache-2.0
// Whether one rank's plan does what the schedule's steps say, and nothing else. It looks at this rank alone, so it
// takes time in the number of its ops. A proof of the schedule in units (prove_steps.h) then holds for the plan's bytes
// too.
//
// It follows what a plan means (plan.h, schedule.h), and calls no part of binding:
// - The ops of a step are, in order, the bytes of its units: each operand in its place, from first to last, without a
//   gap. Empty units have no op, but for one empty token through a channel. A copy onto itself has none.
// - A message is cut into slices as long as a slot. They are opened, closed and counted down as marks and rest_bytes
//   say. MOVEs in turn are dealt out by as many slices as the slots allow.
// - SIGNAL and WAIT have the step's ranks and phase. Exposures are the step's, where they were kept.
// - Staged: what a SIGNAL exposes to reads is copied to the mirror before it, once in a plan. What it lets peers write
//   is copied out after the WAIT for a later phase of theirs. A step that only ends reads of the mirror is left out.
// - Scratch, flag line and mirrors lie where every rank's plan has them, without overlap.
//
// What no single rank shows is left to a proof of all ranks' plans: that their hashes agree, that peers write all of a
// staged output that is open to them, and that several slices of a message need the slots that are stated.
#pragma once

#include <vector>

#include "impl/prove/prove.h"
#include "impl/schedule/bind.h"

namespace tutti {

/// A plan and what it was bound to.
struct BoundPlan {
  const Plan& plan;
  const BindRequest& request;  ///< of the plan's rank
  Count segment = 0;           ///< elements of each block that the plan handles; unused in a v form
};

/// Where the plan departs from the rank's steps first; empty: it refines them.
/// Requires: no step of the rank has a flaw (check.h).
[[nodiscard]] std::vector<Finding> find_departures(const Schedule& schedule, const BoundPlan& bound);
[[nodiscard]] inline bool refines(const Schedule& schedule, const BoundPlan& bound) {
  return find_departures(schedule, bound).empty();
}

}  // namespace tutti
