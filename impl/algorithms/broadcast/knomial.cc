// SPDX-License-Identifier: Apache-2.0
// k-nomial broadcast, k = 4: a tree in relative ranks v = (rank - root) mod P. With m the largest power of 4 that
// divides v (any for the root), v's parent is v with that digit cleared and its children are v + j * 4^i for 4^i < m, j
// = 1..3, farthest first. Receiving, storing and sending on to the first children is one MOVE; further children read
// the output.
//
// P = 8, root 0:
//   rank 0  OUT[0], CH(4), CH(1), CH(2) <- IN[0];  CH(3) <- IN[0]
//   rank 4  OUT[0], CH(5), CH(6), CH(7) <- CH(0)
//   rank 1  OUT[0] <- CH(0)
#include <algorithm>
#include <array>

#include "impl/algorithms/algorithm.h"

namespace tutti {
namespace {

constexpr int kRadix = 4;
constexpr int kMost = 3 * 16;  // children of one rank: 3 per base-4 digit of a 32-bit rank

struct Children {
  std::array<int, kMost> relative{};
  int size = 0;
};

int parent_of(int relative) {
  int digit = 1;
  while (relative / digit % kRadix == 0) digit *= kRadix;
  return relative - relative / digit % kRadix * digit;
}

Children children_of(int ranks, int relative) {
  std::int64_t below = 1;  // the first power of the radix at which `relative` has a digit, or beyond P for the root
  while (below < ranks && relative / below % kRadix == 0) below *= kRadix;
  Children children;
  for (std::int64_t digit = below / kRadix; digit >= 1; digit /= kRadix) {
    for (int j = 1; j < kRadix && relative + j * digit < ranks; ++j) {
      children.relative[static_cast<std::size_t>(children.size++)] = static_cast<int>(relative + j * digit);
    }
  }
  return children;
}

/// Children that the first MOVE serves beside the output; each further MOVE serves four.
constexpr int kFirst = 3;
constexpr int kFurther = 4;

int moves_for(int children) { return 1 + std::max(0, children - kFirst + kFurther - 1) / kFurther; }
int move_of_child(int index) { return index < kFirst ? 0 : 1 + (index - kFirst) / kFurther; }

int relative_rank(const Problem& problem, int rank) { return (rank - problem.root + problem.ranks) % problem.ranks; }

Shape shape(const Problem& problem) { return {.units_per_block = 1, .largest_message = problem.ranks > 1 ? 1 : 0}; }

int step_count(const Problem& problem, int rank) {
  return moves_for(children_of(problem.ranks, relative_rank(problem, rank)).size);
}

Step step(const Problem& problem, int rank, int index) {
  const int relative = relative_rank(problem, rank);
  const Children children = children_of(problem.ranks, relative);
  const auto absolute = [&problem](int v) { return (v + problem.root) % problem.ranks; };
  const UnitSet all = unit(0);

  Operands<4> destinations;
  if (index == 0) destinations.push_back(output(rank, all));
  for (int i = 0; i < children.size; ++i) {
    if (move_of_child(i) == index)
      destinations.push_back(channel(absolute(children.relative[static_cast<std::size_t>(i)])));
  }
  if (relative == 0) return move(destinations, {input(rank, all)});
  if (index == 0) return move(destinations, {channel(absolute(parent_of(relative)))});
  return move(destinations, {output(rank, all)});
}

/// MOVEs and transfers from the start to the end of the first MOVE of relative rank v.
int depth_of(int ranks, int relative) {
  if (relative == 0) return 1;
  const int parent = parent_of(relative);
  const Children siblings = children_of(ranks, parent);
  const auto* const place = std::find(siblings.relative.begin(), siblings.relative.begin() + siblings.size, relative);
  return depth_of(ranks, parent) + move_of_child(static_cast<int>(place - siblings.relative.begin())) + 2;
}

Cost cost(const Problem& problem, int rank) {
  const int children = children_of(problem.ranks, relative_rank(problem, rank)).size;
  int depth = 0;
  for (int v = 0; v < problem.ranks; ++v) {
    depth = std::max(depth, depth_of(problem.ranks, v) + moves_for(children_of(problem.ranks, v).size) - 1);
  }
  return {.steps = moves_for(children), .messages = children, .units = children, .depth = depth};
}

/// Messages flow down only: every slot that a parent fills is emptied without help from above.
int least_slots(const Problem& problem, int /*slices*/) { return problem.ranks > 1 ? 1 : 0; }

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
    .least_slots = least_slots,
};

}  // namespace tutti
