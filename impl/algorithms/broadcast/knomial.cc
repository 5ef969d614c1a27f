// SPDX-License-Identifier: Apache-2.0
// k-nomial broadcast, k = 4: the tree of knomial.h in relative ranks, the children with the largest subtrees first.
// Receiving, storing and sending on to the first children is one MOVE; further children read the output.
//
// P = 8, root 0:
//   rank 0  OUT[0], CH(4), CH(3), CH(2) <- IN[0];  CH(1) <- IN[0]
//   rank 4  OUT[0], CH(7), CH(6), CH(5) <- CH(0)
//   rank 1  OUT[0] <- CH(0)
#include "impl/algorithms/knomial.h"

namespace tutti {
namespace {

Shape shape(const Problem& problem) { return {.units_per_block = 1, .largest_message = problem.ranks > 1 ? 1 : 0}; }

int step_count(const Problem& problem, int rank) {
  return knomial::moves_for(knomial::children_of(problem.ranks, knomial::relative_rank(problem, rank)).size);
}

Step step(const Problem& problem, int rank, int index) {
  const int relative = knomial::relative_rank(problem, rank);
  const knomial::Children children = knomial::children_of(problem.ranks, relative);
  const UnitSet all = unit(0);

  Operands<4> destinations;
  if (index == 0) destinations.push_back(output(rank, all));
  for (int i = 0; i < children.size; ++i) {
    const int child = *(children.end() - 1 - i);
    if (knomial::move_of_child(i) == index) destinations.push_back(channel(knomial::absolute_rank(problem, child)));
  }
  if (relative == 0) return move(destinations, {input(rank, all)});
  if (index == 0) {
    const int parent = knomial::parent_of(problem.ranks, relative);
    return move(destinations, {channel(knomial::absolute_rank(problem, parent))});
  }
  return move(destinations, {output(rank, all)});
}

Cost cost(const Problem& problem, int rank) {
  const int children = knomial::children_of(problem.ranks, knomial::relative_rank(problem, rank)).size;
  return {.steps = knomial::moves_for(children),
          .messages = children,
          .units = children,
          .depth = knomial::broadcast_depth(problem.ranks)};
}

}  // namespace

extern const Algorithm k_broadcast_knomial;
const Algorithm k_broadcast_knomial{
    .collective = Collective::broadcast,
    .name = "knomial",
    .summary = "4-nomial tree over channels; ceil(log4 P) rounds",
    .source = "binomial broadcast with radix k, as in MPICH and UCC",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .least_slots = one_slot,
};

}  // namespace tutti
