// SPDX-License-Identifier: Apache-2.0
// sendrecv over channels: send to the next rank and receive from the one before, slice by slice in turn. So one slot is
// enough, and in place slice k leaves before slice k arrives.
//
// P = 4, rank 0 (next 1, previous 3):
//   step 0  CH(1) <- IN[0], in turn
//   step 1  OUT[0] <- CH(3)
#include "impl/algorithms/algorithm.h"

namespace tutti {
namespace {

Shape shape(const Problem& problem) { return {.units_per_block = 1, .largest_message = problem.ranks > 1 ? 1 : 0}; }

int step_count(const Problem& problem, int /*rank*/) { return problem.ranks > 1 ? 2 : 1; }

Step step(const Problem& problem, int rank, int index) {
  const int ranks = problem.ranks;
  const Operand in = input(rank, unit(0)), out = output(rank, unit(0));
  if (ranks == 1) return move({out}, {in});
  if (index == 0) return in_turn(move({channel((rank + 1) % ranks)}, {in}));
  return move({out}, {channel((rank + ranks - 1) % ranks)});
}

Cost cost(const Problem& problem, int rank) {
  const int sent = problem.ranks > 1 ? 1 : 0;
  return {.steps = step_count(problem, rank), .messages = sent, .units = sent, .depth = 1 + 2 * sent};
}

}  // namespace

extern const Algorithm k_sendrecv_channel;
const Algorithm k_sendrecv_channel{
    .collective = Collective::sendrecv,
    .name = "channel",
    .summary = "send to the next rank and receive from the one before, slice by slice in turn",
    .source = "MPI_Sendrecv around a ring",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .least_slots = one_slot,
};

}  // namespace tutti
