// SPDX-License-Identifier: Apache-2.0
// Pairwise reduce_scatter: in round i = 1..P-1 rank r sends block r+i straight to its owner, receives its own block
// from rank r-i and adds it. The two take turns, so that one slot is enough for any lengths. Every block crosses once,
// and the sums are made where they are needed: the input is left as it is.
//
// P = 4, rank 0:
//   step 0  CH(1) <- IN[1], in turn     step 2  CH(2) <- IN[2], in turn      step 4  CH(3) <- IN[3], in turn
//   step 1  OUT[0] <- CH(3) op IN[0]    step 3  OUT[0] <- CH(2) op OUT[0]    step 5  OUT[0] <- CH(1) op OUT[0]
#include "impl/algorithms/algorithm.h"

namespace tutti {
namespace {

Shape shape(const Problem& problem) { return {.units_per_block = 1, .largest_message = problem.ranks > 1 ? 1 : 0}; }

int step_count(const Problem& problem, int /*rank*/) { return problem.ranks > 1 ? 2 * (problem.ranks - 1) : 1; }

Step step(const Problem& problem, int rank, int index) {
  const int ranks = problem.ranks;
  const Operand mine = input(rank, unit(rank));
  if (ranks == 1) return final_move({output(rank, unit(0))}, {mine});
  const int distance = index / 2 + 1;
  const int to = (rank + distance) % ranks;
  if (index % 2 == 0) return in_turn(move({channel(to)}, {input(rank, unit(to))}));
  Step add = move({output(rank, unit(0))},
                  {channel((rank + ranks - distance) % ranks), distance == 1 ? mine : output(rank, unit(0))});
  add.is_final = distance == ranks - 1;
  return add;
}

Cost cost(const Problem& problem, int rank) {
  const int ranks = problem.ranks;
  return {.steps = step_count(problem, rank),
          .messages = ranks - 1,
          .units = ranks - 1,
          .depth = ranks > 1 ? 3 * (ranks - 1) : 1};
}

}  // namespace

extern const Algorithm k_reduce_scatter_pairwise;
const Algorithm k_reduce_scatter_pairwise{
    .collective = Collective::reduce_scatter,
    .name = "pairwise",
    .summary = "every block straight to its owner, one exchange per round over channels; P-1 rounds",
    .source = "pairwise exchange, as in MPICH",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .least_slots = one_slot,
    .synchronises = true,
    .takes_counts = true,
    .turning = Turning::around,
};

}  // namespace tutti
