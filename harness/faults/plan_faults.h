// SPDX-License-Identifier: Apache-2.0
// Faults of the data path: they change the ops of a plan that was bound and proved, or its kernel. Every SIGNAL, WAIT
// and slot stays, so a broken plan ends like the right one and only the data are wrong.
#pragma once

#include <cstdint>

#include "harness/faults/fault.h"
#include "harness/verify/oracle.h"

namespace tutti {
struct BoundEntry;
}

namespace tutti::harness::faults {

/// What is broken, and where.
struct PlanFault {
  Fault fault = Fault::flipped_bit;
  int rank = 0;         ///< the rank of the broken plan; narrow_type breaks those of all ranks
  Operation operation;  ///< the case as the oracle sees it
  std::uint64_t seed = 1;
  bool is_in_place = false;  ///< the case is
};

/// Whether the fault is one of those that are put into plans; the others change what a call is given (injector.h).
[[nodiscard]] bool is_plan_fault(Fault fault);
/// Breaks what `rank` has bound; false: this plan has no place for the fault, and is as it was.
[[nodiscard]] bool break_plan(const PlanFault& fault, int rank, BoundEntry& bound);

}  // namespace tutti::harness::faults
