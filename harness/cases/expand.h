// SPDX-License-Identifier: Apache-2.0
// From a sweep to the list of cells that are run, and from a cell to its cases.
//
// A cell's bytes are those really moved: a size is rounded down to whole elements, as many in every block. But a size
// above 0 is at least one element, of a divided collective one per block. Sizes that become the same cell are merged.
// What does not apply to a collective (a root, an op, a barrier's size) does not multiply its cells. What was asked for
// and cannot be is a usage error where it fits nowhere, else it is left out and counted: nothing vanishes silently.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/cases/case.h"
#include "harness/cases/sweep.h"

namespace tutti::harness::cases {

/// Cells that were asked for and are not run, for one reason: the footer prints `12 x band exists for integers only`.
struct LeftOut {
  std::int64_t cells = 0;
  std::string reason = {};

  bool operator==(const LeftOut&) const = default;
};

struct Expansion {
  std::vector<Cell> cells =
      {};  ///< by ranks, collective, dtype, op, root, pair, window, placement, buffers, bytes; as the user listed them
  std::vector<LeftOut> left_out = {};
};

/// Whether an op exists for a dtype.
using PairExists = bool (*)(Dtype, Op);
/// What the table of ops says.
[[nodiscard]] bool pair_exists(Dtype dtype, Op op);

/// Errors: invalid_argument naming an op that none of the collectives that reduce has, and those that the first one
/// has.
[[nodiscard]] Status check_ops(std::span<const Collective> collectives, std::span<const Op> ops);
/// Errors: invalid_argument where the sweep names a dtype and an op, and a collective that reduces, and the pair does
/// not exist: the message names the ops that do. Where it names an op: those of check_ops.
[[nodiscard]] Status check_pairs(const Sweep& sweep, PairExists exists);

/// "band exists for integers only".
[[nodiscard]] std::string no_such_pair(Dtype dtype, Op op);
/// "scan has no avg: ...".
[[nodiscard]] std::string no_such_op(Collective collective, Op op);
/// One cell more that is left out for this reason.
void leave_out(std::vector<LeftOut>& left_out, std::string reason);

/// Placements that the user did not choose: broadcast, which has one buffer in MPI, runs in place, all others out of
/// place. Errors: invalid_argument if no cell can be made of a value that was named. Such a value is a pair of dtype
/// and op that does not exist, a root that fits none of the rank counts, or an algorithm that none of the collectives
/// has.
[[nodiscard]] Result<Expansion> expand(const Sweep& sweep, PairExists exists = pair_exists);

/// The cases of one cell of `expand(sweep)`: each backend in order, the own one once per algorithm that the collective
/// has. The algorithm `auto` stays `auto`: what it chooses is known where the case runs.
[[nodiscard]] std::vector<Case> cases_of(const Cell& cell, const Sweep& sweep);

}  // namespace tutti::harness::cases
