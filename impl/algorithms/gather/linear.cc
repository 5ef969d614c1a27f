// SPDX-License-Identifier: Apache-2.0
// Linear gather: everybody sends its block to the root, which takes them in the order of ranks behind it.
//
// P = 4, root 0:   rank 0                    rank 1
//                  step 0  OUT[0] <- IN[0]   step 0  CH(0) <- IN[0]
//                  step 1  OUT[1] <- CH(1)
//                  step 2  OUT[2] <- CH(2)
//                  step 3  OUT[3] <- CH(3)
#include "impl/algorithms/algorithm.h"

namespace tutti {
namespace {

Shape shape(const Problem& problem) { return {.units_per_block = 1, .largest_message = problem.ranks > 1 ? 1 : 0}; }

int step_count(const Problem& problem, int rank) { return rank == problem.root ? problem.ranks : 1; }

Step step(const Problem& problem, int rank, int index) {
  const int root = problem.root;
  if (rank != root) return move({channel(root)}, {input(rank, unit(0))});
  const int peer = (root + index) % problem.ranks;
  return move({output(root, unit(peer))}, {index == 0 ? input(root, unit(0)) : channel(peer)});
}

Cost cost(const Problem& problem, int rank) {
  const int ranks = problem.ranks;
  const int sent = rank == problem.root ? 0 : 1;
  return {.steps = step_count(problem, rank), .messages = sent, .units = sent, .depth = ranks > 1 ? ranks + 1 : 1};
}

}  // namespace

extern const Algorithm k_gather_linear;
const Algorithm k_gather_linear{
    .collective = Collective::gather,
    .name = "linear",
    .summary = "everyone sends to the root, which takes the blocks in the order of ranks",
    .source = "basic linear gather, as in Open MPI",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .least_slots = one_slot,
    .takes_counts = true,
};

}  // namespace tutti
