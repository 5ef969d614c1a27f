// SPDX-License-Identifier: Apache-2.0
// Direct scatter: everybody reads its block of the root's input. The root then waits until all have read, save where
// its input was staged in scratch, which its generation protects.
//
// P = 4, root 0:   rank 0                                        rank 1
//                  step 0  SIGNAL {1,2,3} phase 1, read IN[t]    step 0  WAIT {0} phase 1
//                  step 1  OUT[0] <- IN[0]                       step 1  OUT[0] <- IN[1]@0
//                  step 2  WAIT {1,2,3} phase 2                  step 2  SIGNAL {0} phase 2
#include "impl/algorithms/algorithm.h"

namespace tutti {
namespace {

Shape shape(const Problem& problem) { return {.units_per_block = 1, .exposes_input = problem.ranks > 1}; }

int step_count(const Problem& problem, int /*rank*/) { return problem.ranks > 1 ? 3 : 1; }

Step step(const Problem& problem, int rank, int index) {
  const int ranks = problem.ranks;
  const int root = problem.root;
  const bool is_root = rank == root;
  if (ranks > 1 && index == 0) {
    if (!is_root) return wait(only(root), 1);
    return signal(others(root, ranks), 1, {.space = Space::input, .units = unit(0), .per_target = 1});
  }
  if (ranks > 1 && index == 2) return closing_reads(is_root ? wait(others(root, ranks), 2) : signal(only(root), 2));
  return move({output(rank, unit(0))}, {input(root, unit(rank))});
}

Cost cost(const Problem& problem, int rank) {
  return {.steps = step_count(problem, rank),
          .messages = 0,
          .units = rank == problem.root ? 0 : 1,
          .depth = problem.ranks > 1 ? 3 : 1};
}

}  // namespace

extern const Algorithm k_scatter_direct;
const Algorithm k_scatter_direct{
    .collective = Collective::scatter,
    .name = "direct",
    .summary = "everyone reads its block of the root's input; one round of reads, for shared memory",
    .source = "linear scatter by remote reads",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
};

}  // namespace tutti
