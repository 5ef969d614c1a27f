// SPDX-License-Identifier: Apache-2.0
// Direct reduce: rank r reduces unit r of everybody's input straight into the root's output, so that all ranks share
// the work and nothing is written twice. The root's output is complete, and the inputs are free, when all have done so.
// Only the root lets others write.
//
// P = 4, root 0, rank 0:
//   step 0  SIGNAL {1,2,3} phase 1, read IN[t], write OUT[t]
//   step 1  WAIT {1,2,3} phase 1
//   step 2  OUT[0] <- IN[0]@0 op IN[0]@1 op IN[0]@2 op IN[0]@3 (final)
//   step 3  SIGNAL {1,2,3} phase 2
//   step 4  WAIT {1,2,3} phase 2
#include "impl/algorithms/algorithm.h"

namespace tutti {
namespace {

Shape shape(const Problem& problem) {
  const bool is_group = problem.ranks > 1;
  return {.units_per_block = problem.ranks, .exposes_input = is_group, .exposes_output = is_group};
}

int step_count(const Problem& problem, int /*rank*/) { return problem.ranks > 1 ? 5 : 1; }

Step announce(const Problem& problem, int rank) {
  Exposure write;
  if (rank == problem.root) write = {.space = Space::output, .units = unit(0), .per_target = 1};
  return signal(others(rank, problem.ranks), 1, {.space = Space::input, .units = unit(0), .per_target = 1}, write);
}

Step step(const Problem& problem, int rank, int index) {
  const int ranks = problem.ranks;
  const UnitSet mine = unit(rank);
  if (ranks == 1) return final_move({output(rank, mine)}, {input(rank, mine)});
  switch (index) {
    case 0:
      return announce(problem, rank);
    case 1:
      return wait(others(rank, ranks), 1);
    case 2:
      return final_move({output(problem.root, mine)}, {on(everyone(ranks), input(rank, mine))});
    case 3:
      return signal(others(rank, ranks), 2);
    default:
      return wait(others(rank, ranks), 2);
  }
}

Cost cost(const Problem& problem, int rank) {
  return {.steps = step_count(problem, rank),
          .messages = 0,
          .units = problem.ranks - (rank == problem.root ? 1 : 0),
          .depth = problem.ranks > 1 ? 3 : 1};
}

}  // namespace

extern const Algorithm k_reduce_direct;
const Algorithm k_reduce_direct{
    .collective = Collective::reduce,
    .name = "direct",
    .summary =
        "each rank reduces its slice of all inputs into the root's output; one round of reads, least memory traffic",
    .source = "two-shot all_reduce with one receiver",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .synchronises = true,
};

}  // namespace tutti
