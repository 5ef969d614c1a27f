// SPDX-License-Identifier: Apache-2.0
// Chain broadcast: every rank stores what its predecessor sends and passes it on in the same MOVE, slice by slice. So a
// long buffer flows through all ranks at the speed of one link.
//
// P = 4, root 0:   rank 0                           rank 1                           rank 3
//                  step 0  OUT[0], CH(1) <- IN[0]   step 0  OUT[0], CH(2) <- CH(0)   step 0  OUT[0] <- CH(2)
#include "impl/algorithms/algorithm.h"

namespace tutti {
namespace {

Shape shape(const Problem& problem) { return {.units_per_block = 1, .largest_message = problem.ranks > 1 ? 1 : 0}; }

int step_count(const Problem& /*problem*/, int /*rank*/) { return 1; }

bool is_last(const Problem& problem, int rank) { return (rank + 1) % problem.ranks == problem.root; }

Step step(const Problem& problem, int rank, int /*index*/) {
  const int ranks = problem.ranks;
  Operands<4> destinations{output(rank, unit(0))};
  if (!is_last(problem, rank)) destinations.push_back(channel((rank + 1) % ranks));
  return move(destinations, {rank == problem.root ? input(rank, unit(0)) : channel((rank + ranks - 1) % ranks)});
}

Cost cost(const Problem& problem, int rank) {
  const int sent = is_last(problem, rank) ? 0 : 1;
  return {.steps = 1, .messages = sent, .units = sent, .depth = 2 * problem.ranks - 1};
}

}  // namespace

extern const Algorithm k_broadcast_chain;
const Algorithm k_broadcast_chain{
    .collective = Collective::broadcast,
    .name = "chain",
    .summary = "each rank stores and passes on, slice by slice; P-1 hops, the root sends once",
    .source = "pipelined chain, as in Open MPI and NCCL's ring",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .least_slots = one_slot,
};

}  // namespace tutti
