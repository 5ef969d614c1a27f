// SPDX-License-Identifier: Apache-2.0
// k-nomial reduce, k = 4: the tree of knomial.h in relative ranks. A rank adds what its children send to its own input
// and sends the sum to its parent. A MOVE hears three children, those of one level of the tree. A rank with children on
// more levels keeps the sum in between: in scratch, and the root in its output. Sums are of neighbouring ranks in their
// order.
//
// P = 8, root 0:
//   rank 0  OUT[0] <- IN[0] op CH(1) op CH(2) op CH(3);  OUT[0] <- OUT[0] op CH(4)
//   rank 4  CH(0) <- IN[0] op CH(5) op CH(6) op CH(7)
//   rank 1  CH(0) <- IN[0]
#include "impl/algorithms/knomial.h"

namespace tutti {
namespace {

constexpr int kFanIn = knomial::kRadix - 1;  ///< children that one MOVE hears

/// The least number of ranks on which one that is not the root has children on two levels. It is rank 16, with 17 to 19
/// and 20.
constexpr int kNeedsScratch = 21;

Shape shape(const Problem& problem) {
  return {.units_per_block = 1,
          .scratch_units = problem.ranks >= kNeedsScratch ? 1 : 0,
          .largest_message = problem.ranks > 1 ? 1 : 0};
}

int step_count(const Problem& problem, int rank) {
  const int children = knomial::children_of(problem.ranks, knomial::relative_rank(problem, rank)).size;
  return std::max(1, (children + kFanIn - 1) / kFanIn);
}

Step step(const Problem& problem, int rank, int index) {
  const int relative = knomial::relative_rank(problem, rank);
  const knomial::Children children = knomial::children_of(problem.ranks, relative);
  const bool is_root = relative == 0;
  const bool is_last = (index + 1) * kFanIn >= children.size;
  const Operand partial = is_root ? output(rank, unit(0)) : scratch(rank, unit(0));

  Operands<4> sources{index == 0 ? input(rank, unit(0)) : partial};
  for (int i = index * kFanIn; i < std::min((index + 1) * kFanIn, children.size); ++i) {
    sources.push_back(channel(knomial::absolute_rank(problem, children.relative[static_cast<std::size_t>(i)])));
  }
  if (!is_last) return move({partial}, sources);
  if (is_root) return final_move({partial}, sources);
  return move({channel(knomial::absolute_rank(problem, knomial::parent_of(problem.ranks, relative)))}, sources);
}

/// MOVEs and transfers until the root of a subtree of `size` ranks has its sum. The levels below the highest are full
/// and take two each; the first child on the highest has the largest subtree there.
int depth_of(int size) {
  if (size == 1) return 1;
  int width = 1;
  int clock = 0;
  for (; width * knomial::kRadix < size; width *= knomial::kRadix) clock = clock == 0 ? 3 : clock + 2;
  return std::max(clock, depth_of(std::min(width, size - width)) + 1) + 1;
}

Cost cost(const Problem& problem, int rank) {
  const int sent = rank == problem.root ? 0 : 1;
  return {.steps = step_count(problem, rank), .messages = sent, .units = sent, .depth = depth_of(problem.ranks)};
}

}  // namespace

extern const Algorithm k_reduce_knomial;
const Algorithm k_reduce_knomial{
    .collective = Collective::reduce,
    .name = "knomial",
    .summary = "4-nomial tree over channels, three children to a MOVE; ceil(log4 P) hops",
    .source = "binomial reduce with radix k, as in MPICH and UCC",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .least_slots = one_slot,
};

}  // namespace tutti
