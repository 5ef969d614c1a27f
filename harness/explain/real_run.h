// SPDX-License-Identifier: Apache-2.0
// Runs an example for real. Ranks are threads, each with a communicator of its own, on buffers that all of them can
// address. So the schedule is walked as it stands. What comes out is compared bit by bit with a straight loop over the
// inputs in rank order, in the oracle's arithmetic.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "harness/explain/example.h"

namespace tutti::harness::explain {

struct RealRun {
  std::vector<Pair> before;  ///< [rank]
  std::vector<Pair> after;
  Count checked = 0;        ///< elements of outputs that were compared
  Count wrong = 0;          ///< of them, and of inputs that were written
  std::string first_wrong;  ///< empty: none
};

/// Errors: those of the communicator, and of its proof: unless a test wants it otherwise, a plan is proved before it
/// runs.
[[nodiscard]] Result<RealRun> run_example(const Example& example, const Schedule& schedule, bool proves = true);

/// What is wrong with the numbers of a rank's output, where nothing but they was written: "element 2 of rank 0's output
/// is 1, and should be 3"; empty: nothing.
[[nodiscard]] std::string what_is_wrong(const Example& example, const Numbers& output, int rank);

/// One barrier whose ranks come one after the other, in nanoseconds from a common start.
struct BarrierRun {
  std::vector<std::int64_t> enters_ns;  ///< [rank]
  std::vector<std::int64_t> leaves_ns;
};
/// Rank r sleeps r times `nap` before it enters.
[[nodiscard]] Result<BarrierRun> run_barrier(const Schedule& schedule, std::chrono::nanoseconds nap);

}  // namespace tutti::harness::explain
