// SPDX-License-Identifier: Apache-2.0
// Direct reduce_scatter: rank r reduces block r of everybody's input in one MOVE, in rank order. Every input is read
// once and every output written once. In place rank r writes the one block of its input that no peer reads.
//
// P = 4, rank 0:
//   step 0  SIGNAL {1,2,3} phase 1, read IN[t]
//   step 1  WAIT {1,2,3} phase 1
//   step 2  OUT[0] <- IN[0]@0 op IN[0]@1 op IN[0]@2 op IN[0]@3 (final)
//   step 3  SIGNAL {1,2,3} phase 2
//   step 4  WAIT {1,2,3} phase 2
#include "impl/algorithms/algorithm.h"

namespace tutti {
namespace {

Shape shape(const Problem& problem) { return {.units_per_block = 1, .exposes_input = problem.ranks > 1}; }

int step_count(const Problem& problem, int /*rank*/) { return problem.ranks > 1 ? 5 : 1; }

Step step(const Problem& problem, int rank, int index) {
  const int ranks = problem.ranks;
  if (ranks == 1) return final_move({output(rank, unit(0))}, {input(rank, unit(0))});
  switch (index) {
    case 0:
      return signal(others(rank, ranks), 1, {.space = Space::input, .units = unit(0), .per_target = 1});
    case 1:
      return wait(others(rank, ranks), 1);
    case 2:
      return final_move({output(rank, unit(0))}, {on(everyone(ranks), input(rank, unit(rank)))});
    case 3:
      return closing_reads(signal(others(rank, ranks), 2));
    default:
      return closing_reads(wait(others(rank, ranks), 2));
  }
}

Cost cost(const Problem& problem, int rank) {
  return {.steps = step_count(problem, rank),
          .messages = 0,
          .units = problem.ranks - 1,
          .depth = problem.ranks > 1 ? 3 : 1};
}

}  // namespace

extern const Algorithm k_reduce_scatter_direct;
const Algorithm k_reduce_scatter_direct{
    .collective = Collective::reduce_scatter,
    .name = "direct",
    .summary = "each rank reduces its block of all inputs; one round of reads, least memory traffic, for shared memory",
    .source = "the first half of two-shot all_reduce, as in Open MPI's XHC",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .synchronises = true,
};

}  // namespace tutti
