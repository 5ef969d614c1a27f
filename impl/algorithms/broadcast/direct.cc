// SPDX-License-Identifier: Apache-2.0
// Direct broadcast: everybody reads the root's buffer. The root then waits until all have read, save where its buffer
// was staged in scratch, which its generation protects.
//
// P = 4, root 0:   rank 0                                        ranks 1, 2, 3
//                  step 0  SIGNAL {1,2,3} phase 1, read IN[0]    step 0  WAIT {0} phase 1
//                  step 1  OUT[0] <- IN[0]                       step 1  OUT[0] <- IN[0]@0
//                  step 2  WAIT {1,2,3} phase 2                  step 2  SIGNAL {0} phase 2
#include "impl/algorithms/algorithm.h"

namespace tutti {
namespace {

Shape shape(const Problem& problem) { return {.units_per_block = 1, .exposes_input = problem.ranks > 1}; }

int step_count(const Problem& problem, int /*rank*/) { return problem.ranks > 1 ? 3 : 1; }

Step step(const Problem& problem, int rank, int index) {
  const int ranks = problem.ranks;
  const int root = problem.root;
  const UnitSet all = unit(0);
  if (rank != root) {
    switch (index) {
      case 0:
        return wait(only(root), 1);
      case 1:
        return move({output(rank, all)}, {input(root, all)});
      default:
        return closing_reads(signal(only(root), 2));
    }
  }
  if (ranks > 1 && index == 0) return signal(others(root, ranks), 1, {.space = Space::input, .units = all});
  if (ranks > 1 && index == 2) return closing_reads(wait(others(root, ranks), 2));
  return move({output(root, all)}, {input(root, all)});
}

Cost cost(const Problem& problem, int rank) {
  return {.steps = step_count(problem, rank),
          .messages = 0,
          .units = rank == problem.root ? 0 : 1,
          .depth = problem.ranks > 1 ? 3 : 1};
}

}  // namespace

extern const Algorithm k_broadcast_direct;
const Algorithm k_broadcast_direct{
    .collective = Collective::broadcast,
    .name = "direct",
    .summary = "everyone reads the root's buffer; one round of reads, for shared memory",
    .source = "flat broadcast, as in MPICH's release_gather and Open MPI's XHC",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
};

}  // namespace tutti
