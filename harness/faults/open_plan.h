// SPDX-License-Identifier: Apache-2.0
// A plan that can be changed, for code that puts faults into it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "harness/floors.h"
#include "impl/schedule/plan.h"

namespace tutti::harness::faults {

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

  [[nodiscard]] std::vector<std::size_t> ops_where(const std::function<bool(OpenOp&)>& fits);
  void insert(std::size_t at, OpenOp op);
  /// Cuts MOVEs to the rank's own output so that none lies on both sides of `boundary`.
  void cut_output_at(std::int64_t boundary);

  PlanHeader header;
  std::vector<OpenOp> ops;
};

[[nodiscard]] inline bool is_my_output(const PlanOperand& operand) {
  return operand.space == Space::output && operand.is_mine;
}

}  // namespace tutti::harness::faults
