// SPDX-License-Identifier: Apache-2.0
// Direct gather. The root reads everybody's input, beginning with its successor. It lets each rank go as soon as its
// input is read: hence a phase per peer.
//
// P = 3, root 0:   rank 0                              rank 1
//                  step 0  OUT[0] <- IN[0]             step 0  SIGNAL {0} phase 1, read IN[0]
//                  step 1  WAIT {1} phase 1            step 1  WAIT {0} phase 2
//                  step 2  OUT[1] <- IN[0]@1
//                  step 3  SIGNAL {1} phase 2
//                  step 4  WAIT {2} phase 2
//                  step 5  OUT[2] <- IN[0]@2
//                  step 6  SIGNAL {2} phase 3
#include "impl/algorithms/algorithm.h"

namespace tutti {
namespace {

Shape shape(const Problem& problem) { return {.units_per_block = 1, .exposes_input = problem.ranks > 1}; }

int step_count(const Problem& problem, int rank) { return rank == problem.root ? 3 * problem.ranks - 2 : 2; }

Step step(const Problem& problem, int rank, int index) {
  const int ranks = problem.ranks;
  const int root = problem.root;
  if (rank != root) {
    const int turn = (rank - root + ranks) % ranks;
    if (index == 0) return signal(only(root), turn, {.space = Space::input, .units = unit(0)});
    return closing_reads(wait(only(root), turn + 1));
  }
  if (index == 0) return move({output(root, unit(root))}, {input(root, unit(0))});
  const int turn = (index + 2) / 3;
  const int peer = (root + turn) % ranks;
  switch (index % 3) {
    case 1:
      return wait(only(peer), turn);
    case 2:
      return move({output(root, unit(peer))}, {input(peer, unit(0))});
    default:
      return closing_reads(signal(only(peer), turn + 1));
  }
}

Cost cost(const Problem& problem, int rank) {
  const int ranks = problem.ranks;
  return {.steps = step_count(problem, rank),
          .messages = 0,
          .units = rank == problem.root ? ranks - 1 : 0,
          .depth = ranks > 1 ? ranks + 1 : 1};
}

}  // namespace

extern const Algorithm k_gather_direct;
const Algorithm k_gather_direct{
    .collective = Collective::gather,
    .name = "direct",
    .summary = "the root reads everyone's input; one round of reads, for shared memory",
    .source = "linear gather by remote reads",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
};

}  // namespace tutti
