// SPDX-License-Identifier: Apache-2.0
// The ranks of a run, as text and as JSON: who was waited for, and how long each took beside the others.
//
//   # ranks of P=4 over all cells, worst first: 1000 samples
//   #  rank  host   came last  others waited  median (us)    p95 (us)  ended last  own time
//   #     1  node5     61.2 %          4.1 %        52.10      318.44      88.0 %   +14.0 %  <- straggler
#pragma once

#include <span>
#include <string>

#include "harness/record/rank_tally.h"

namespace tutti::harness::report {

/// A line for each straggler; empty if there is none.
[[nodiscard]] std::string straggler_lines(std::span<const RankResult> ranks);
/// The table of all ranks.
[[nodiscard]] std::string ranks_table(std::span<const RankResult> ranks);
/// A list of objects, in the same order.
[[nodiscard]] std::string ranks_json(std::span<const RankResult> ranks);

}  // namespace tutti::harness::report
