// SPDX-License-Identifier: Apache-2.0
// Faults of the data path: they change the ops of a plan that was bound and proved, or its kernel. Every SIGNAL, WAIT
// and slot stays, so a broken plan ends like the right one and only the data are wrong.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "harness/faults/fault.h"
#include "harness/verify/oracle.h"
#include "impl/schedule/plan.h"

namespace tutti {
struct BoundEntry;
}

namespace tutti::harness {

/// A plan taken apart. Shortcuts are gone: every MOVE takes the kernel.
struct OpenPlan {
  struct OpenOp {
    PlanOp op;
    std::vector<PlanOperand> operands;  ///< of a MOVE: destinations, then sources

    [[nodiscard]] bool moves() const { return op.verb == Verb::move && op.bytes > 0; }
    [[nodiscard]] PlanOperand& source(std::size_t i) { return operands[op.destinations + i]; }
    /// How many values are reduced to one.
    [[nodiscard]] int values() const;
  };
  explicit OpenPlan(const Plan& plan);
  [[nodiscard]] Plan closed() const;

  PlanHeader header;
  std::vector<OpenOp> ops;
};

/// What is broken, and where.
struct PlanFault {
  Fault fault = Fault::flipped_bit;
  int rank = 0;         ///< whose plan; narrow_type breaks all ranks'
  Operation operation;  ///< the case as the oracle sees it
  std::uint64_t seed = 1;
};

/// Whether the fault is one of those that are put into plans; the others change what a call is given (injector.h).
[[nodiscard]] bool is_plan_fault(Fault fault);
/// Breaks what `rank` has bound; false: this plan has no place for the fault, and is as it was.
[[nodiscard]] bool break_plan(const PlanFault& fault, int rank, BoundEntry& bound);

}  // namespace tutti::harness
