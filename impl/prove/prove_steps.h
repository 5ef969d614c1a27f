// SPDX-License-Identifier: Apache-2.0
// A schedule proved on many ranks, where executing the plans of all ranks in all forms takes too long. It is proved in
// units: no bytes, no slices (a message is one), shared buffers. One rank stands for all where the schedule commutes
// with a group (quotient.h). Otherwise, where it only copies, messages are matched (copies.h), or else every rank is
// executed (steps_walk.h). Plans of some ranks are then compared with their steps. On few ranks prove_schedule judges
// the plans of all.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "impl/prove/prove.h"
#include "impl/prove/refine_plans.h"

namespace tutti {

/// A schedule that was proved in units.
struct StepsProof {
  std::string_view group;     ///< by which one rank stands for all, such as `rotation`; empty: there is none
  bool is_matched = false;    ///< every block went once from its input to its output (copies.h)
  int forms = 0;              ///< out of place, and in place where that is not staged
  int least_slots = 0;        ///< as stated: with one less it stops; 0: no channels
  bool synchronises = false;  ///< as stated, and shown
  /// Labels (prove.h), out of place; none: not derived.
  std::optional<bool> keeps_order;
  std::optional<bool> same_bits;
  bool sends_are_stable = true;
  RefinedPlans refined;  ///< plans of some ranks
};

/// Proves all obligations of prove.h in units, out of place and in place, and that the schedule's cost formula,
/// `least_slots` and `synchronises` are true, and that plans of some ranks refine their steps. Errors: refuted with
/// every reason (reasons.h); unavailable where no rank stands for all and the values of all ranks are more than 800
/// MiB.
[[nodiscard]] Result<StepsProof> prove_steps(const Schedule& schedule);

/// The same fault on fewer ranks.
struct SmallerFault {
  int ranks;
  std::string message;
};
/// The smallest number of ranks below `ranks` on which `make` gives a schedule that prove_steps refutes for `reason`
/// (reasons.h), but for the numbers in it. The first few hundred are tried one by one. Further up the fault is taken to
/// stay once it is there. `make` gives none for numbers on which there is no such schedule.
[[nodiscard]] std::optional<SmallerFault> find_smaller_fault(const std::string& reason, int ranks,
                                                             const std::function<std::optional<Schedule>(int)>& make);

}  // namespace tutti
