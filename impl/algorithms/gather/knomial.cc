// SPDX-License-Identifier: Apache-2.0
// k-nomial gather, k = 4: the tree of knomial.h in relative ranks. A rank sends its parent its own block and then, in
// the order of ranks, the blocks of its subtree. It sends each of them on as it arrives from the child that is on its
// way: nothing is stored in between. The root hears from 3 ceil(log4 P) ranks instead of P-1.
//
// P = 6, root 0:   rank 0                    rank 4                   rank 1
//                  step 0  OUT[0] <- IN[0]   step 0  CH(0) <- IN[0]   step 0  CH(0) <- IN[0]
//                  step 1  OUT[1] <- CH(1)   step 1  CH(0) <- CH(5)
//                  step 2  OUT[2] <- CH(2)
//                  step 3  OUT[3] <- CH(3)
//                  step 4  OUT[4] <- CH(4)
//                  step 5  OUT[5] <- CH(4)
#include "impl/algorithms/knomial.h"

namespace tutti {
namespace {

Shape shape(const Problem& problem) { return {.units_per_block = 1, .largest_message = problem.ranks > 1 ? 1 : 0}; }

int step_count(const Problem& problem, int rank) {
  return knomial::subtree_size(problem.ranks, knomial::relative_rank(problem, rank));
}

Step step(const Problem& problem, int rank, int index) {
  const int relative = knomial::relative_rank(problem, rank);
  const int whose = knomial::absolute_rank(problem, relative + index);
  const Operand place = output(problem.root, unit(whose));
  if (index == 0 && relative == 0) return move({place}, {input(rank, unit(0))});
  const int parent = relative == 0 ? -1 : knomial::absolute_rank(problem, knomial::parent_of(problem.ranks, relative));
  if (index == 0) return move({channel(parent)}, {input(rank, unit(0))});
  const int child = knomial::absolute_rank(problem, knomial::child_towards(relative, relative + index));
  return relative == 0 ? move({place}, {channel(child)}) : relay(parent, child, place);
}

Cost cost(const Problem& problem, int rank) {
  const int count = step_count(problem, rank);
  const int sent = rank == problem.root ? 0 : count;
  // The root takes one block after the other; each has arrived when its turn comes, but for the first.
  return {.steps = count, .messages = sent, .units = sent, .depth = problem.ranks > 1 ? problem.ranks + 1 : 1};
}

}  // namespace

extern const Algorithm k_gather_knomial;
const Algorithm k_gather_knomial{
    .collective = Collective::gather,
    .name = "knomial",
    .summary = "4-nomial tree over channels, relayed block by block; ceil(log4 P) hops",
    .source = "binomial gather with radix k, as in MPICH and UCC",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .least_slots = one_slot,
    .takes_counts = true,
};

}  // namespace tutti
