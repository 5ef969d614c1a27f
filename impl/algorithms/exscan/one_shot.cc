// SPDX-License-Identifier: Apache-2.0
// One-shot exscan: everybody puts its input into scratch and reads those of the ranks before. One round, no trailing
// synchronisation, and the last rank reads P - 1 inputs: the best for small messages.
//
// P = 4, rank 1:
//   step 0  SCR[0] <- IN[0]
//   step 1  SIGNAL {2,3} phase 1, read SCR[0]
//   step 2  WAIT {0} phase 1
//   step 3  OUT[0] <- SCR[0]@0
#include "impl/algorithms/algorithm.h"

namespace tutti {
namespace {

Shape shape(const Problem& problem) { return {.units_per_block = 1, .scratch_units = problem.ranks > 1 ? 1 : 0}; }

/// The first rank gets nothing, the last one shows nothing.
bool shows(const Problem& problem, int rank) { return rank + 1 < problem.ranks; }

int step_count(const Problem& problem, int rank) { return (shows(problem, rank) ? 2 : 0) + (rank > 0 ? 2 : 0); }

Step step(const Problem& problem, int rank, int index) {
  const Operand shown = scratch(rank, unit(0));
  if (!shows(problem, rank)) index += 2;
  const RankSet before{.first = 0, .stride = 1, .n = rank};
  const RankSet after{.first = (rank + 1) % problem.ranks, .stride = 1, .n = problem.ranks - rank - 1};
  switch (index) {
    case 0:
      return move({shown}, {input(rank, unit(0))});
    case 1:
      return signal(after, 1, {.space = Space::scratch, .units = unit(0)});
    case 2:
      return wait(before, 1);
    default:
      return move({output(rank, unit(0))}, {on(before, shown)});
  }
}

Cost cost(const Problem& problem, int rank) {
  return {.steps = step_count(problem, rank), .messages = 0, .units = rank, .depth = problem.ranks > 1 ? 3 : 0};
}

}  // namespace

extern const Algorithm k_exscan_one_shot;
const Algorithm k_exscan_one_shot{
    .collective = Collective::exscan,
    .name = "one_shot",
    .summary = "everyone reads the inputs of the ranks before from scratch; one round, for small messages",
    .source = "one-shot all_reduce, of the ranks below one's own",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
};

}  // namespace tutti
