// SPDX-License-Identifier: Apache-2.0
// Two-shot all_reduce: rank r reduces unit r of everybody's input and stores the result to everybody's output. Two
// rounds of flags and the least memory traffic that a node can do (every input read once, every output written once).
//
// P = 4, rank 0:
//   step 0  SIGNAL {1,2,3} phase 1, read IN[t], write OUT[t]
//   step 1  WAIT {1,2,3} phase 1
//   step 2  OUT[0]@{0..3} <- IN[0]@0 op IN[0]@1 op IN[0]@2 op IN[0]@3 (final)
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

Step step(const Problem& problem, int rank, int index) {
  const int ranks = problem.ranks;
  const UnitSet mine = unit(rank);
  if (ranks == 1) return final_move({output(rank, mine)}, {input(rank, mine)});
  switch (index) {
    case 0:
      return signal(others(rank, ranks), 1, {.space = Space::input, .units = unit(0), .per_target = 1},
                    {.space = Space::output, .units = unit(0), .per_target = 1});
    case 1:
      return wait(others(rank, ranks), 1);
    case 2:
      return final_move({on(everyone(ranks), output(rank, mine))}, {on(everyone(ranks), input(rank, mine))});
    case 3:
      return signal(others(rank, ranks), 2);
    default:
      return wait(others(rank, ranks), 2);
  }
}

Cost cost(const Problem& problem, int rank) {
  return {.steps = step_count(problem, rank),
          .messages = 0,
          .units = 2 * (problem.ranks - 1),
          .depth = problem.ranks > 1 ? 3 : 1};
}

}  // namespace

extern const Algorithm k_all_reduce_two_shot;
const Algorithm k_all_reduce_two_shot{
    .collective = Collective::all_reduce,
    .name = "two_shot",
    .summary = "each rank reduces its slice of all inputs and stores it to all outputs; least memory traffic",
    .source = "direct reduce-scatter + all-gather, as in Open MPI's XHC and in two-shot GPU kernels",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .synchronises = true,
};

}  // namespace tutti
