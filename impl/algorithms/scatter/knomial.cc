// SPDX-License-Identifier: Apache-2.0
// k-nomial scatter, k = 4: the tree of knomial.h in relative ranks, and gather/knomial backwards. A rank gets the
// blocks of its subtree, the last rank's first. It sends each on, as it arrives, to the child that is on its way. It
// keeps the one that comes last: its own.
//
// P = 6, root 0:   rank 0                    rank 4                    rank 1
//                  step 0  CH(4) <- IN[5]    step 0  CH(5) <- CH(0)    step 0  OUT[0] <- CH(0)
//                  step 1  CH(4) <- IN[4]    step 1  OUT[0] <- CH(0)
//                  step 2  CH(3) <- IN[3]
//                  step 3  CH(2) <- IN[2]
//                  step 4  CH(1) <- IN[1]
//                  step 5  OUT[0] <- IN[0]
#include "impl/algorithms/knomial.h"

namespace tutti {
namespace {

Shape shape(const Problem& problem) { return {.units_per_block = 1, .largest_message = problem.ranks > 1 ? 1 : 0}; }

int step_count(const Problem& problem, int rank) {
  return knomial::subtree_size(problem.ranks, knomial::relative_rank(problem, rank));
}

Step step(const Problem& problem, int rank, int index) {
  const int relative = knomial::relative_rank(problem, rank);
  const int below = step_count(problem, rank) - 1 - index;  // whose block it is, in the subtree
  const Operand block = input(problem.root, unit(knomial::absolute_rank(problem, relative + below)));
  const int parent = relative == 0 ? -1 : knomial::absolute_rank(problem, knomial::parent_of(problem.ranks, relative));
  const Operand source = relative == 0 ? block : channel(parent);
  if (below == 0) return move({output(rank, unit(0))}, {source});
  const int child = knomial::absolute_rank(problem, knomial::child_towards(relative, relative + below));
  return relative == 0 ? move({channel(child)}, {source}) : relay(child, parent, block);
}

Cost cost(const Problem& problem, int rank) {
  const int count = step_count(problem, rank);
  // The block of the root's successor leaves last, after P-2 others.
  return {
      .steps = count, .messages = count - 1, .units = count - 1, .depth = problem.ranks > 1 ? problem.ranks + 1 : 1};
}

}  // namespace

extern const Algorithm k_scatter_knomial;
const Algorithm k_scatter_knomial{
    .collective = Collective::scatter,
    .name = "knomial",
    .summary = "4-nomial tree over channels, relayed block by block; ceil(log4 P) hops",
    .source = "binomial scatter with radix k, as in MPICH and UCC",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .least_slots = one_slot,
    .takes_counts = true,
};

}  // namespace tutti
