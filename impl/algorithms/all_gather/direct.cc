// SPDX-License-Identifier: Apache-2.0
// Direct all_gather: each rank reads every peer's input, beginning with its successor so that no two ranks read from
// the same peer at once. In place nobody writes the block that peers read, so nothing need be staged for it.
//
// P = 3, rank 0:
//   step 0  SIGNAL {1,2} phase 1, read IN[0]    step 4  WAIT {2} phase 1
//   step 1  OUT[0] <- IN[0]                     step 5  OUT[2] <- IN[0]@2
//   step 2  WAIT {1} phase 1                    step 6  SIGNAL {1,2} phase 2
//   step 3  OUT[1] <- IN[0]@1                   step 7  WAIT {1,2} phase 2
#include "impl/algorithms/algorithm.h"

namespace tutti {
namespace {

Shape shape(const Problem& problem) { return {.units_per_block = 1, .exposes_input = problem.ranks > 1}; }

int step_count(const Problem& problem, int /*rank*/) { return problem.ranks > 1 ? 2 * problem.ranks + 2 : 1; }

Step step(const Problem& problem, int rank, int index) {
  const int ranks = problem.ranks;
  if (ranks == 1) return move({output(rank, unit(0))}, {input(rank, unit(0))});
  if (index == 0) return signal(others(rank, ranks), 1, {.space = Space::input, .units = unit(0)});
  if (index == 1) return move({output(rank, unit(rank))}, {input(rank, unit(0))});
  if (index < 2 * ranks) {
    const int peer = (rank + index / 2) % ranks;
    if (index % 2 == 0) return wait(only(peer), 1);
    return move({output(rank, unit(peer))}, {input(peer, unit(0))});
  }
  return closing_reads(index == 2 * ranks ? signal(others(rank, ranks), 2) : wait(others(rank, ranks), 2));
}

Cost cost(const Problem& problem, int rank) {
  const int ranks = problem.ranks;
  return {.steps = step_count(problem, rank), .messages = 0, .units = ranks - 1, .depth = ranks > 1 ? ranks + 1 : 1};
}

}  // namespace

extern const Algorithm k_all_gather_direct;
const Algorithm k_all_gather_direct{
    .collective = Collective::all_gather,
    .name = "direct",
    .summary = "each rank reads every peer's input; one round of reads, for shared memory",
    .source = "linear all_gather by remote reads",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .synchronises = true,
    .turning = Turning::around,
};

}  // namespace tutti
