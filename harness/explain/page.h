// SPDX-License-Identifier: Apache-2.0
// The pages of `tutti explain`, as text from what was run and followed. At most kPageWidth columns, for up to
// kMostExplained ranks.
#pragma once

#include <string>

#include "harness/explain/real_run.h"
#include "harness/explain/replay.h"

namespace tutti::harness::explain {

/// What the collective means, and both buffers of every rank before it.
[[nodiscard]] std::string introduction(const Example& example, const RealRun& run);
/// What each rank does: one rank of each kind step by step, and what all take from each other, round by round.
[[nodiscard]] std::string steps_page(const Algorithm& algorithm, const Schedule& schedule, const Example& example,
                                     const Replay& replay);
/// The buffers afterwards.
[[nodiscard]] std::string result_page(const Example& example, const RealRun& run);

/// The two halves of an all_reduce, run one after the other on its inputs.
struct Halves {
  RealRun reduce_scatter;
  RealRun all_gather;
  bool are_equal = false;  ///< to what the all_reduce gave
};
[[nodiscard]] std::string halves_page(const Halves& halves);

/// Ranks that come one after the other, and leave together.
[[nodiscard]] std::string barrier_page(const BarrierRun& run);

}  // namespace tutti::harness::explain
