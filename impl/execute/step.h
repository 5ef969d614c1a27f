// SPDX-License-Identifier: Apache-2.0
// The step logic: how a lane walks a plan. A lane is a resumable state of two words, polled until done. This header
// knows no memory and no instruction set: a Machine does what a step asks for. CPU ranks and GPU kernels walk the same
// plans through it, so it also compiles as device code.
//
// A Machine provides
//   bool heard(int rank, uint16_t phase)          whether `rank` has announced `phase` of this operation (acquire)
//   or, in its place, bool heard_all(RankSet, uint16_t phase)   the same of all ranks of a set at once
//   void announce(const PlanOp&, const PlanOperand*)   publishes references where marked, then the phase (release)
//   bool channels_ready(const PlanOp&, const PlanOperand*)   every source slot is full and every destination slot free
//   void move(const PlanOp&, const PlanOperand*)             computes the piece
//   void close_channels(const PlanOp&, const PlanOperand*)   publishes destination slots, releases source slots
// where the operands are the step's own: destinations, then sources; of announce the ranks that are to hear. It may
// have an `exchange` of its own, which does what the one below does.
#pragma once

#include <cstdint>

#include "impl/schedule/plan.h"
#include "impl/types/host_device.h"

namespace tutti {

struct Lane {
  std::uint32_t at = 0;     ///< index of the next op
  std::int32_t cursor = 0;  ///< WAIT: ranks of the set already heard
};

/// Whether all ranks of `set` have announced `phase`, asked from `cursor` on; else `cursor` is the first that has not.
template <class Machine>
TUTTI_HOST_DEVICE inline bool hear(const RankSet& set, std::uint16_t phase, int ranks, std::int32_t& cursor,
                                   Machine& machine) {
  if constexpr (requires { machine.heard_all(set, phase); }) {
    return machine.heard_all(set, phase);
  } else {
    int rank = set.at(cursor, ranks);
    for (; cursor < set.n && machine.heard(rank, phase); ++cursor) rank = set.after(rank, ranks);
    return cursor == set.n;
  }
}

/// The beginning of `advance` for a plan that is an exchange of small blocks (PlanHeader::is_exchange): its four steps
/// without a loop. On small operations the walk is most of the time that is not a transfer.
template <class Machine>
TUTTI_HOST_DEVICE inline bool exchange(Lane& lane, const PlanView& plan, Machine& machine) {
  const PlanOp* const op = plan.ops();
  const PlanOperand* const operands = plan.operands();
  const int ranks = plan.header().ranks;
  machine.move(op[0], operands + op[0].first_operand);
  machine.announce(op[1], operands + op[1].first_operand);
  std::int32_t cursor = 0;
  if (!hear(operands[op[2].first_operand].ranks, op[2].phase, ranks, cursor, machine)) {
    lane = {.at = 2, .cursor = cursor};
    return false;
  }
  machine.move(op[3], operands + op[3].first_operand);
  return true;
}

/// Walks as far as it can without waiting; true when the plan is complete.
template <class Machine>
TUTTI_HOST_DEVICE bool advance(Lane& lane, const PlanView& plan, Machine& machine) {
  const PlanOp* const ops = plan.ops();
  const PlanOperand* const operands = plan.operands();
  const std::uint32_t end = plan.header().ops;
  const int ranks = plan.header().ranks;
  if (plan.header().is_exchange && lane.at == 0) {
    if constexpr (requires { machine.exchange(lane, plan); }) {
      return machine.exchange(lane, plan);
    } else {
      return exchange(lane, plan, machine);
    }
  }
  Lane here = lane;  // in registers: the machine's stores cannot change it
  for (; here.at < end; ++here.at) {
    const PlanOp& op = ops[here.at];
    if (op.verb == Verb::move) {
      const PlanOperand* const own = operands + op.first_operand;
      if ((op.marks & mark_opens) != 0 && !machine.channels_ready(op, own)) break;
      machine.move(op, own);
      if ((op.marks & mark_closes) != 0) machine.close_channels(op, own);
    } else if (op.verb == Verb::signal) {
      machine.announce(op, operands + op.first_operand);
    } else {
      if (!hear(operands[op.first_operand].ranks, op.phase, ranks, here.cursor, machine)) break;
      here.cursor = 0;
    }
  }
  lane = here;
  return here.at == end;
}

}  // namespace tutti
