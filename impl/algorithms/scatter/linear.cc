// SPDX-License-Identifier: Apache-2.0
// Linear scatter: the root sends everybody its block, in the order of ranks behind it.
//
// P = 4, root 0:   rank 0                    rank 1
//                  step 0  CH(1) <- IN[1]    step 0  OUT[0] <- CH(0)
//                  step 1  CH(2) <- IN[2]
//                  step 2  CH(3) <- IN[3]
//                  step 3  OUT[0] <- IN[0]
#include "impl/algorithms/algorithm.h"

namespace tutti {
namespace {

Shape shape(const Problem& problem) { return {.units_per_block = 1, .largest_message = problem.ranks > 1 ? 1 : 0}; }

int step_count(const Problem& problem, int rank) { return rank == problem.root ? problem.ranks : 1; }

Step step(const Problem& problem, int rank, int index) {
  const int root = problem.root;
  if (rank != root) return move({output(rank, unit(0))}, {channel(root)});
  const int peer = (root + index + 1) % problem.ranks;
  return move({peer == root ? output(root, unit(0)) : channel(peer)}, {input(root, unit(peer))});
}

Cost cost(const Problem& problem, int rank) {
  const int ranks = problem.ranks;
  const int sent = rank == problem.root ? ranks - 1 : 0;
  return {.steps = step_count(problem, rank), .messages = sent, .units = sent, .depth = ranks > 1 ? ranks + 1 : 1};
}

}  // namespace

extern const Algorithm k_scatter_linear;
const Algorithm k_scatter_linear{
    .collective = Collective::scatter,
    .name = "linear",
    .summary = "the root sends everyone its block, in the order of ranks",
    .source = "basic linear scatter, as in Open MPI",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .least_slots = one_slot,
    .takes_counts = true,
};

}  // namespace tutti
