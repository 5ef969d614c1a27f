// SPDX-License-Identifier: Apache-2.0
// Chain scan: each rank puts what arrives before its own input, stores it and passes it on, slice by slice. So the last
// rank has its prefix about P slices after the beginning, at the speed of one link.
//
// P = 4: rank 0                            rank 1                                     rank 3
//        step 0  OUT[0], CH(1) <- IN[0]    step 0  OUT[0], CH(2) <- CH(0) op IN[0]    step 0  OUT[0] <- CH(2) op IN[0]
#include "impl/algorithms/algorithm.h"

namespace tutti {
namespace {

Shape shape(const Problem& problem) { return {.units_per_block = 1, .largest_message = problem.ranks > 1 ? 1 : 0}; }

int step_count(const Problem& /*problem*/, int /*rank*/) { return 1; }

Step step(const Problem& problem, int rank, int /*index*/) {
  Operands<4> destinations{output(rank, unit(0))};
  if (rank + 1 < problem.ranks) destinations.push_back(channel(rank + 1));
  Operands<4> sources;
  if (rank > 0) sources.push_back(channel(rank - 1));
  sources.push_back(input(rank, unit(0)));
  return move(destinations, sources);
}

Cost cost(const Problem& problem, int rank) {
  const int sent = rank + 1 < problem.ranks ? 1 : 0;
  return {.steps = 1, .messages = sent, .units = sent, .depth = 2 * problem.ranks - 1};
}

}  // namespace

extern const Algorithm k_scan_chain;
const Algorithm k_scan_chain{
    .collective = Collective::scan,
    .name = "chain",
    .summary = "each rank adds, stores and passes on, slice by slice; P-1 hops, each rank sends once",
    .source = "linear pipeline, as in Open MPI's linear scan",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .least_slots = one_slot,
};

}  // namespace tutti
