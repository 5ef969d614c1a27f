// SPDX-License-Identifier: Apache-2.0
// Plans of all ranks in one form, and plans with one mechanical fault: an op is dropped, doubled, put elsewhere, or
// says something else.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "impl/algorithms/algorithm.h"
#include "impl/prove/forms.h"
#include "impl/prove/refines.h"
#include "suites/unit/impl/prove/open_plans.h"

namespace tutti {

/// All ranks' only segment, as `form` says.
struct BoundForm {
  BoundForm(const Schedule& of, const Form& form) : schedule(of) {
    const int ranks = schedule.problem.ranks;
    for (int rank = 0; rank < ranks && form.has_lengths; ++rank) {
      blocks.push_back(uneven_blocks(schedule.problem, rank).value());
    }
    for (int rank = 0; rank < ranks; ++rank) {
      BindRequest& request = requests.emplace_back(request_of(schedule, form));
      request.rank = rank;
      if (form.has_lengths) request.blocks = &blocks[static_cast<std::size_t>(rank)];
      Result<BoundCall> call = bind(schedule, request);
      EXPECT_TRUE(call.is_ok()) << call.status().message();
      plans.push_back(call.value().plan(0));
    }
  }
  BoundForm(const BoundForm&) = delete;
  BoundForm& operator=(const BoundForm&) = delete;

  [[nodiscard]] BoundPlan bound(int rank, const Plan& plan) const {
    const BindRequest& request = requests[static_cast<std::size_t>(rank)];
    return {.plan = plan, .request = request, .segment = request.count};
  }
  /// The first departure of `plan`, as `rank`'s; empty: it refines the steps.
  [[nodiscard]] std::string departure(int rank, const Plan& plan) const {
    const auto found = find_departures(schedule, bound(rank, plan));
    return found.empty() ? std::string() : to_string(found.front());
  }
  /// Why the plans are refuted together, if `plan` is `rank`'s; empty: they are proved.
  [[nodiscard]] std::string refutation(int rank, const Plan& plan) const {
    std::vector<Plan> all = plans;
    all[static_cast<std::size_t>(rank)] = plan;
    const BindRequest& request = requests.front();
    PlanSet set = set_of(schedule, all, request, request.resources.slots);
    set.blocks = blocks;
    const Proof proof = prove_plans(set);
    return proof.holds() ? std::string() : to_string(proof.findings.front());
  }

  const Schedule& schedule;
  std::vector<BlockTable> blocks;
  std::vector<BindRequest> requests;
  std::vector<Plan> plans;
};

enum class PlanFault {
  dropped,
  doubled,
  swapped,
  moved_over_sync,  ///< behind the next SIGNAL or WAIT
  moved_back,       ///< before the SIGNAL or WAIT before it
  offset_shifted,   ///< of one operand, by an element
  offset_lowered,
  shortened,
  lengthened,
  sides_swapped,
  rank_changed,
  set_cut,
  set_turned,
  space_changed,
  owner_changed,
  phase_raised,
  phase_lowered,
  mark_changed,
  rest_changed,
  channel_hidden,
  step_changed,
  exposure_dropped,
  exposure_shifted,
  exposure_given,
  generation_left,
  scratch_cut,
  kCount
};

inline std::string to_string(PlanFault fault) {
  constexpr std::array kNames{"dropped",
                              "doubled",
                              "swapped",
                              "moved over a SIGNAL or WAIT",
                              "moved back over one",
                              "offset shifted",
                              "offset lowered",
                              "shortened",
                              "lengthened",
                              "sides swapped",
                              "rank changed",
                              "set cut",
                              "set turned",
                              "space changed",
                              "owner changed",
                              "phase raised",
                              "phase lowered",
                              "mark changed",
                              "rest changed",
                              "channel hidden",
                              "step changed",
                              "exposure dropped",
                              "exposure moved",
                              "exposure given to another",
                              "generation left",
                              "scratch cut short"};
  static_assert(kNames.size() == static_cast<std::size_t>(PlanFault::kCount));
  return kNames[static_cast<std::size_t>(fault)];
}

/// How many ways there are to have `fault` at op `index`: one for each operand, mark or exposure, say.
inline int ways_of(const OpenPlan& plan, std::size_t index, PlanFault fault) {
  const PlanOp& op = plan.ops[index];
  const int operands = op.verb == Verb::move ? op.destinations + op.sources : 1;
  switch (fault) {
    case PlanFault::offset_shifted:
    case PlanFault::offset_lowered:
    case PlanFault::space_changed:
    case PlanFault::owner_changed:
      return op.verb == Verb::move ? operands : 0;
    case PlanFault::rank_changed:
    case PlanFault::set_cut:
    case PlanFault::set_turned:
      return operands;
    case PlanFault::mark_changed:
      return 8;
    case PlanFault::exposure_dropped:
    case PlanFault::exposure_shifted:
    case PlanFault::exposure_given: {
      int exposures = 0;
      for (const PlanExposure& exposure : plan.exposures) exposures += exposure.op == index ? 1 : 0;
      return exposures;
    }
    case PlanFault::generation_left:
    case PlanFault::scratch_cut:
      return index == 0 ? 1 : 0;
    case PlanFault::phase_raised:
    case PlanFault::phase_lowered:
      return op.verb == Verb::move ? 0 : 1;
    default:
      return 1;
  }
}

/// Exposures follow their SIGNAL, the op at `from`, to `to`; ops between them make room.
inline void move_op(OpenPlan& plan, std::size_t from, std::size_t to) {
  const PlanOp op = plan.ops[from];
  plan.ops.erase(plan.ops.begin() + static_cast<std::ptrdiff_t>(from));
  plan.ops.insert(plan.ops.begin() + static_cast<std::ptrdiff_t>(to), op);
  for (PlanExposure& exposure : plan.exposures) {
    if (exposure.op == from) {
      exposure.op = static_cast<std::uint32_t>(to);
    } else if (exposure.op > from && exposure.op <= to) {
      --exposure.op;
    } else if (exposure.op < from && exposure.op >= to) {
      ++exposure.op;
    }
  }
}

/// Breaks op `index` in one of its ways; whether the plan differs from what it was.
inline bool break_op(OpenPlan& plan, std::size_t index, PlanFault fault, int way) {
  const OpenPlan before = plan;
  const auto at = static_cast<std::ptrdiff_t>(index);
  const std::int64_t element = static_cast<std::int64_t>(size_of(plan.header.dtype));
  PlanOp& op = plan.ops[index];
  PlanOperand& operand = plan.operands[op.first_operand + static_cast<std::size_t>(way)];
  const auto exposure = [&]() {
    auto found = plan.exposures.begin();
    for (int left = way; found->op != index || left-- > 0;) ++found;
    return found;
  };
  plan.header.is_exchange = false;
  switch (fault) {
    case PlanFault::dropped:
      plan.ops.erase(plan.ops.begin() + at);
      std::erase_if(plan.exposures, [&](const PlanExposure& one) { return one.op == index; });
      for (PlanExposure& one : plan.exposures) one.op -= one.op > index ? 1 : 0;
      return true;
    case PlanFault::doubled:
      plan.ops.insert(plan.ops.begin() + at, PlanOp(op));
      for (PlanExposure& one : plan.exposures) one.op += one.op > index ? 1 : 0;
      return true;
    case PlanFault::swapped:
      if (index + 1 == plan.ops.size()) return false;
      move_op(plan, index, index + 1);
      return true;
    case PlanFault::moved_over_sync:
      for (std::size_t to = index + 1; to < plan.ops.size(); ++to) {
        if (plan.ops[to].verb == Verb::move) continue;
        move_op(plan, index, to);
        return true;
      }
      return false;
    case PlanFault::moved_back:
      for (std::size_t to = index; to-- > 0;) {
        if (plan.ops[to].verb == Verb::move) continue;
        move_op(plan, index, to);
        return true;
      }
      return false;
    case PlanFault::offset_shifted:
      operand.offset += element;
      return true;
    case PlanFault::offset_lowered:
      operand.offset -= element;
      return true;
    case PlanFault::shortened:
      if (op.bytes < element) return false;
      op.bytes -= element;
      return true;
    case PlanFault::lengthened:
      if (op.verb == Verb::move) op.bytes += element;
      return op.verb == Verb::move;
    case PlanFault::sides_swapped:
      if (op.verb != Verb::move) return false;
      std::swap(operand, plan.operands[op.first_operand + op.destinations]);
      break;
    case PlanFault::rank_changed:
      operand.ranks.first = (operand.ranks.first + 1) % plan.header.ranks;
      break;
    case PlanFault::set_cut:
      --operand.ranks.n;
      return operand.ranks.n >= 0;
    case PlanFault::set_turned:
      if (operand.ranks.n < 2 || plan.header.ranks < 3) return false;
      operand.ranks.stride = operand.ranks.stride % (plan.header.ranks - 1) + 1;
      break;
    case PlanFault::space_changed:
      operand.space = operand.space == Space::input     ? Space::output
                      : operand.space == Space::output  ? Space::scratch
                      : operand.space == Space::scratch ? Space::output
                                                        : Space::scratch;
      return true;
    case PlanFault::owner_changed:
      operand.is_mine = !operand.is_mine;
      return true;
    case PlanFault::phase_raised:
      ++op.phase;
      return true;
    case PlanFault::phase_lowered:
      --op.phase;
      return true;
    case PlanFault::mark_changed:
      op.marks = static_cast<std::uint8_t>(op.marks ^ (1U << static_cast<unsigned>(way)));
      return true;
    case PlanFault::rest_changed:
      if (op.has_channel == 0) return false;
      op.rest_bytes += element;
      return true;
    case PlanFault::channel_hidden:
      op.has_channel = op.has_channel == 0 ? 1 : 0;
      return op.verb == Verb::move;
    case PlanFault::step_changed:
      ++op.step;
      return true;
    case PlanFault::exposure_dropped:
      plan.exposures.erase(exposure());
      return true;
    case PlanFault::exposure_shifted:
      exposure()->offset += element;
      return true;
    case PlanFault::exposure_given:
      exposure()->target = (exposure()->target + 1) % plan.header.ranks;
      break;
    case PlanFault::generation_left:
      plan.header.uses_generation = !plan.header.uses_generation;
      return true;
    case PlanFault::scratch_cut:
      plan.header.scratch_bytes -= 1;
      return plan.header.scratch_bytes >= 0;
    case PlanFault::kCount:
      break;
  }
  return plan.ops != before.ops || plan.operands != before.operands || plan.exposures != before.exposures;
}

/// Verdicts of `refines`, and of the proof of all ranks' plans, on plans of one rank with a fault.
struct Verdicts {
  int by_both = 0;
  int by_neither = 0;
  int by_refines_alone = 0;
  int by_proof_alone = 0;
  std::string example;  ///< of the last

  [[nodiscard]] int total() const { return by_both + by_neither + by_refines_alone + by_proof_alone; }
};

/// Breaks every op of `rank` in every way.
inline void judge_faults(const BoundForm& form, int rank, Verdicts& verdicts) {
  const OpenPlan whole(form.plans[static_cast<std::size_t>(rank)]);
  for (std::size_t index = 0; index < whole.ops.size(); ++index) {
    for (int kind = 0; kind < static_cast<int>(PlanFault::kCount); ++kind) {
      const auto fault = static_cast<PlanFault>(kind);
      for (int way = 0; way < ways_of(whole, index, fault); ++way) {
        OpenPlan mutant = whole;
        if (!break_op(mutant, index, fault, way)) continue;
        const Plan plan = mutant.closed();
        const bool is_refused = !refines(form.schedule, form.bound(rank, plan));
        const std::string refutation = form.refutation(rank, plan);
        ++(is_refused           ? refutation.empty() ? verdicts.by_refines_alone : verdicts.by_both
           : refutation.empty() ? verdicts.by_neither
                                : verdicts.by_proof_alone);
        if (is_refused || refutation.empty()) continue;
        verdicts.example = form.schedule.name + " rank " + std::to_string(rank) + " op " + std::to_string(index) + " " +
                           to_string(fault) + " in way " + std::to_string(way) + ": " + refutation;
      }
    }
  }
}

}  // namespace tutti
