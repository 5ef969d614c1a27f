// SPDX-License-Identifier: Apache-2.0
// Ring reduce_scatter: block b starts at rank b+1 and travels once around. Every rank adds its own part as it sends it
// on, in one MOVE; the last to add is its owner. Neighbours only, and nothing is stored in between.
//
// P = 4, rank 0 (next 1, previous 3):
//   step 0  CH(1) <- IN[3]                step 2  CH(1) <- CH(3) op IN[1]
//   step 1  CH(1) <- CH(3) op IN[2]       step 3  OUT[0] <- CH(3) op IN[0]
//
// Source: Patarasuk & Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations, 2009: its first half.
#include "impl/algorithms/algorithm.h"

namespace tutti {
namespace {

Shape shape(const Problem& problem) { return {.units_per_block = 1, .largest_message = problem.ranks > 1 ? 1 : 0}; }

int step_count(const Problem& problem, int /*rank*/) { return problem.ranks; }

Step step(const Problem& problem, int rank, int index) {
  const int ranks = problem.ranks;
  const Operand here = input(rank, unit((rank + 2 * ranks - 1 - index) % ranks));
  const Operand next = channel((rank + 1) % ranks);
  const Operand previous = channel((rank + ranks - 1) % ranks);
  if (ranks == 1) return final_move({output(rank, unit(0))}, {here});
  if (index == 0) return move({next}, {here});
  if (index < ranks - 1) return move({next}, {previous, here});
  return final_move({output(rank, unit(0))}, {previous, here});
}

Cost cost(const Problem& problem, int /*rank*/) {
  const int ranks = problem.ranks;
  return {.steps = ranks, .messages = ranks - 1, .units = ranks - 1, .depth = 2 * ranks - 1};
}

/// From three ranks on there are MOVEs that need a free slot before they release one.
int least_slots(const Problem& problem, int slices) {
  return problem.ranks > 2 ? slices + 1 : slots_of_whole_message(problem, slices);
}

}  // namespace

extern const Algorithm k_reduce_scatter_ring;
const Algorithm k_reduce_scatter_ring{
    .collective = Collective::reduce_scatter,
    .name = "ring",
    .summary = "once around the ring, neighbours only; P-1 rounds, nothing stored in between",
    .source = "Patarasuk & Yuan 2009, doi:10.1016/j.jpdc.2008.09.002",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .least_slots = least_slots,
    .synchronises = true,
    .turning = Turning::around,
};

}  // namespace tutti
