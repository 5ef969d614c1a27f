// SPDX-License-Identifier: Apache-2.0
#include "harness/faults/open_plan.h"

#include <algorithm>

namespace tutti::harness::faults {

int OpenPlan::OpenOp::values() const {
  int count = 0;
  for (std::size_t i = op.destinations; i < operands.size(); ++i)
    count += operands[i].is_mine ? 1 : operands[i].ranks.n;
  return count;
}

OpenPlan::OpenPlan(const Plan& plan) : header(plan.header()) {
  header.is_exchange = false;
  for (const PlanOp& op : plan.ops()) {
    const std::size_t count = op.verb == Verb::move ? std::size_t{op.destinations} + op.sources : 1;
    const auto operands = plan.operands().subspan(op.first_operand, count);
    ops.push_back({.op = op, .operands = {operands.begin(), operands.end()}});
    ops.back().op.shortcut = Shortcut::none;
  }
}

Plan OpenPlan::closed() const {
  std::vector<PlanOp> closed;
  std::vector<PlanOperand> operands;
  for (const OpenOp& one : ops) {
    closed.push_back(one.op);
    closed.back().first_operand = static_cast<std::uint32_t>(operands.size());
    operands.insert(operands.end(), one.operands.begin(), one.operands.end());
  }
  return {header, closed, operands, {}};
}

std::vector<std::size_t> OpenPlan::ops_where(const std::function<bool(OpenOp&)>& fits) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (fits(ops[i])) found.push_back(i);
  }
  return found;
}

void OpenPlan::insert(std::size_t at, OpenOp op) {
  ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(at), std::move(op));
}

void OpenPlan::cut_output_at(std::int64_t boundary) {
  for (std::size_t i = 0; i < ops.size(); ++i) {
    OpenOp& op = ops[i];
    if (!op.moves()) continue;
    const auto outside = std::ranges::find_if(op.operands, [&](const PlanOperand& one) {
      return is_my_output(one) && one.offset < boundary && boundary < one.offset + op.op.bytes;
    });
    if (outside == op.operands.end()) continue;
    OpenOp rest = op;
    const std::int64_t first = boundary - outside->offset;
    for (PlanOperand& operand : rest.operands) operand.offset += first;
    rest.op.bytes -= first;
    rest.op.marks &= static_cast<std::uint8_t>(~mark_opens);
    op.op.bytes = first;
    op.op.marks &= static_cast<std::uint8_t>(~mark_closes);
    insert(i + 1, std::move(rest));
  }
}

}  // namespace tutti::harness::faults
