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

/// Children that the first MOVE serves beside the output; each further MOVE serves four.
constexpr int kFirst = 3;
constexpr int kFurther = 4;

int moves_for(int children) { return 1 + std::max(0, children - kFirst + kFurther - 1) / kFurther; }
int move_of_child(int index) { return index < kFirst ? 0 : 1 + (index - kFirst) / kFurther; }

Shape shape(const Problem& problem) { return {.units_per_block = 1, .largest_message = problem.ranks > 1 ? 1 : 0}; }

int step_count(const Problem& problem, int rank) {
  return moves_for(knomial::children_of(problem.ranks, knomial::relative_rank(problem, rank)).size);
}

Step step(const Problem& problem, int rank, int index) {
  const int relative = knomial::relative_rank(problem, rank);
  const knomial::Children children = knomial::children_of(problem.ranks, relative);
  const UnitSet all = unit(0);

  Operands<4> destinations;
  if (index == 0) destinations.push_back(output(rank, all));
  for (int i = 0; i < children.size; ++i) {
    const int child = *(children.end() - 1 - i);
    if (move_of_child(i) == index) destinations.push_back(channel(knomial::absolute_rank(problem, child)));
  }
  if (relative == 0) return move(destinations, {input(rank, all)});
  if (index == 0) {
    const int parent = knomial::parent_of(problem.ranks, relative);
    return move(destinations, {channel(knomial::absolute_rank(problem, parent))});
  }
  return move(destinations, {output(rank, all)});
}

/// MOVEs and transfers from the start to the end of the first MOVE of relative rank v.
int depth_of(int ranks, int relative) {
  if (relative == 0) return 1;
  const int parent = knomial::parent_of(ranks, relative);
  const knomial::Children siblings = knomial::children_of(ranks, parent);
  const auto place = siblings.end() - 1 - std::find(siblings.begin(), siblings.end(), relative);
  return depth_of(ranks, parent) + move_of_child(static_cast<int>(place)) + 2;
}

Cost cost(const Problem& problem, int rank) {
  const int children = knomial::children_of(problem.ranks, knomial::relative_rank(problem, rank)).size;
  int depth = 0;
  for (int v = 0; v < problem.ranks; ++v) {
    depth = std::max(depth, depth_of(problem.ranks, v) + moves_for(knomial::children_of(problem.ranks, v).size) - 1);
  }
  return {.steps = moves_for(children), .messages = children, .units = children, .depth = depth};
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
