// SPDX-License-Identifier: Apache-2.0
// The prover: reads the plans of all ranks of one problem and says whether together they do what the collective means,
// on every interleaving. It executes them once with symbolic values (values.h) and checks every access as it happens.
//
// One execution is enough: nobody receives from "anyone" and no step depends on data. So the ranks form a Kahn network,
// whose results do not depend on the interleaving, provided that remote accesses do not race. That is checked locally,
// in the owner's program order (races.h): an access lies between the SIGNAL that exposed the memory and the WAIT that
// closes it. Order that arises by way of third ranks is not seen, and refused.
//
// Obligations:
// - Every output byte holds exactly the contributions that the collective's meaning names, made final once.
// - Inputs are untouched.
// - All accesses are in bounds, of written memory, exposed where remote, and without race.
// - No exposure of a user's buffer is open at the end.
// - Every WAIT is matched by exactly one SIGNAL to the waiting rank, and every SIGNAL is waited for.
// - Channels are matched slice by slice and are empty at the end.
// - There is no deadlock with the slots given.
// Labels are derived, not demanded.
//
// Two things are refused before anything is executed. One is a step that flaw_of finds fault with: a rank, phase or
// unit out of range, or an exposure that the schedule's shape does not declare. The other is a plan that cannot be
// walked as it is marked (check_plans), such as scratch in a flag line that holds references to exposed buffers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "impl/schedule/bind.h"
#include "impl/schedule/plan.h"
#include "impl/schedule/schedule.h"
#include "impl/types/status.h"

namespace tutti {

/// What refutes a proof. `rank` and `step` (of the schedule) are -1 where the finding belongs to no single one.
struct Finding {
  int rank = -1;
  int step = -1;
  std::string message;
};
/// `rank 2 step 3: ...`
[[nodiscard]] std::string to_string(const Finding& finding);

/// Properties that an algorithm may or may not have.
struct Labels {
  int least_slots = 0;  ///< slots per channel without which it stops, for these plans; 0: no channels, or not derived
  bool keeps_order = true;       ///< reduces 0 op 1 op ... op P-1 in this order: right for ops that do not commute
  bool same_bits = true;         ///< every rank gets the same bits, though rounding depends on the order of operations
  bool synchronises = true;      ///< no rank finishes before every rank has started
  bool sends_are_stable = true;  ///< no source of a copying send is written later: it may be sent without a copy

  bool operator==(const Labels&) const = default;
};

struct Proof {
  std::vector<Finding> findings;  ///< the first few; later ones tend to be consequences
  Labels labels;

  [[nodiscard]] bool holds() const { return findings.empty(); }
};

/// All ranks' plans for one segment, and what they were bound to.
struct PlanSet {
  const Schedule* schedule = nullptr;
  std::span<const Plan> plans;  ///< plans[r] is rank r's, bound with keep_exposures
  int slots = 1;                ///< of each channel
  std::int64_t slot_bytes = 0;
  std::int64_t block_bytes = 0;   ///< of one block in this segment
  std::int64_t block_stride = 0;  ///< distance of two blocks in a user's buffer
  /// Of a v form, blocks[r] are rank r's; the two fields above are then unused.
  std::span<const BlockTable> blocks = {};
};

/// The flaws in steps of any rank (flaw_of); `prove` and `derive_cost` begin with it.
[[nodiscard]] std::vector<Finding> find_flaws(const Schedule& schedule);

/// A set of plans whose proof holds, and what was derived.
struct Proved {
  PlanSet set;
  Labels labels;
};

/// Proves all obligations but the cost formula. Does not derive `least_slots`. Where `set` is `like` in another size
/// (another_size.h), it is not executed once more; `like` may be null.
[[nodiscard]] Proof prove_plans(const PlanSet& set, const Proved* like = nullptr);

/// The least number of slots per channel with which `set` ends, given that it ends with `set.slots`; 0 without
/// channels.
[[nodiscard]] int derive_least_slots(const PlanSet& set);

/// Binds all ranks as `request` says (its rank and keep_exposures do not count) and proves the full and the tail
/// segment. Errors: those of bind.
[[nodiscard]] Result<Proof> prove(const Schedule& schedule, BindRequest request);
/// The same of a v form; blocks[r] are rank r's (BindRequest::blocks does not count).
[[nodiscard]] Result<Proof> prove(const Schedule& schedule, BindRequest request, std::span<const BlockTable> blocks);

/// Blocks of all ranks among which those of `rank` are `table`, for a proof by a rank that knows its own only. What all
/// ranks know is as it is; what the others alone know is made up.
[[nodiscard]] std::vector<BlockTable> blocks_around(const Problem& problem, int rank, const BlockTable& table);

/// Cost derived from the steps of all ranks; empty and a finding where the steps cannot be run to their end.
struct DerivedCost {
  std::vector<Cost> costs;  ///< one per rank; `depth` is the problem's
  std::vector<Finding> findings;
};
[[nodiscard]] DerivedCost derive_cost(const Schedule& schedule);

/// Labels of a proved schedule, and how many sets of plans were proved.
struct ScheduleProof {
  Labels labels;  ///< of the plans whose units are one slot each
  int proofs = 0;
};

/// Proves `schedule` out of place and in place, with shared and private buffers, in these forms:
/// - units of one slot, of four slots (of two on more than 32 ranks), and a block of a single element
/// - where it reduces: also with a factor on each rank
/// - where MOVEs take turns and there are four slices: also with turns of two
/// - where it takes counts: also blocks of different lengths, some of them empty, in any order and with gaps
/// It also proves that the schedule's cost formula, `least_slots` and `synchronises` say what is derived. Not every
/// form is proved on more than 48 ranks, unless they are a power of two. Units of one slot are proved out of place on
/// every number. Of the others each number gets one of four parts in turn. A part is either several slots, or a single
/// element, factors and lengths; it is out of place or in place. With a part in place go units of one slot in place.
/// Plans that are the same with both kinds of buffers, or in two sizes, are executed once.
/// Errors: refuted with every reason (reasons.h), each the case and its first findings; those of bind.
[[nodiscard]] Result<ScheduleProof> prove_schedule(const Schedule& schedule);

}  // namespace tutti
