// SPDX-License-Identifier: Apache-2.0
// A schedule proved on many ranks, where executing the plans of all ranks in all forms takes too long. It is proved in
// units: no bytes, no slices (a message is one), shared buffers. One rank stands for all where the schedule commutes
// with a group (quotient.h); otherwise every rank is executed (steps_walk.h). On few ranks prove_schedule judges the
// plans.
#pragma once

#include <string_view>

#include "impl/prove/prove.h"

namespace tutti {

/// A schedule that was proved in units.
struct StepsProof {
  std::string_view group;     ///< of which one rank stands for all, such as `rotation`; empty: all ranks were executed
  int forms = 0;              ///< out of place, and in place where that is not staged
  int least_slots = 0;        ///< as stated: with one less it stops; 0: no channels
  bool synchronises = false;  ///< as stated, and shown
};

/// Proves all obligations of prove.h in units, out of place and in place, and that the schedule's cost formula,
/// `least_slots` and `synchronises` are true. Errors: refuted with the first findings; unavailable where no rank stands
/// for all and the values of all ranks are more than a gigabyte.
[[nodiscard]] Result<StepsProof> prove_steps(const Schedule& schedule);

}  // namespace tutti
