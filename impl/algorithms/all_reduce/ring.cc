// SPDX-License-Identifier: Apache-2.0
// Ring all_reduce: unit u starts at rank u, travels once around to be summed and once more to be shown to everyone.
// Every rank talks to its two neighbours only and sends 2(P-1)/P of the buffer. Receiving, reducing and sending on is
// one MOVE.
//
// P = 4, rank 0 (next 1, previous 3):
//   step 0  CH(1) <- IN[0]                      step 4  OUT[0], CH(1) <- CH(3)
//   step 1  CH(1) <- CH(3) op IN[3]             step 5  OUT[3], CH(1) <- CH(3)
//   step 2  CH(1) <- CH(3) op IN[2]             step 6  OUT[2] <- CH(3)
//   step 3  OUT[1], CH(1) <- CH(3) op IN[1]     (unit 1 is complete: final)
//
// Source: Patarasuk & Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations, 2009.
#include "impl/algorithms/algorithm.h"

namespace tutti {
namespace {

Shape shape(const Problem& problem) {
  return {.units_per_block = problem.ranks, .largest_message = problem.ranks > 1 ? 1 : 0};
}

int step_count(const Problem& problem, int /*rank*/) { return 2 * problem.ranks - 1; }

Step step(const Problem& problem, int rank, int index) {
  const int ranks = problem.ranks;
  const UnitSet here = unit((rank + 2 * ranks - index) % ranks);  // the unit that passes this rank in this step
  if (ranks == 1) return final_move({output(rank, here)}, {input(rank, here)});

  const Operand next = channel((rank + 1) % ranks);
  const Operand previous = channel((rank + ranks - 1) % ranks);
  if (index == 0) return move({next}, {input(rank, here)});
  if (index < ranks - 1) return move({next}, {previous, input(rank, here)});
  if (index == ranks - 1) return final_move({output(rank, here), next}, {previous, input(rank, here)});
  if (index < 2 * ranks - 2) return move({output(rank, here), next}, {previous});
  return move({output(rank, here)}, {previous});
}

Cost cost(const Problem& problem, int /*rank*/) {
  const int ranks = problem.ranks;
  return {.steps = 2 * ranks - 1, .messages = 2 * (ranks - 1), .units = 2 * (ranks - 1), .depth = 4 * ranks - 3};
}

/// A ring whose slots are all full stops: a fused MOVE needs a free slot before it releases one.
int least_slots(const Problem& problem, int slices) { return problem.ranks > 1 ? slices + 1 : 0; }

}  // namespace

extern const Algorithm k_all_reduce_ring;
const Algorithm k_all_reduce_ring{
    .collective = Collective::all_reduce,
    .name = "ring",
    .summary = "around the ring twice, neighbours only; 2(P-1) rounds, least bytes",
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
