// SPDX-License-Identifier: Apache-2.0
// Ring all_gather. In every round a rank sends its successor the block that it received last, at first its own. It
// receives the next one from its predecessor. The two take turns, so that one slot is enough for any lengths.
//
// P = 4, rank 0 (next 1, previous 3):
//   step 0  OUT[0] <- IN[0]
//   step 1  CH(1) <- IN[0], in turn    step 3  CH(1) <- OUT[3], in turn    step 5  CH(1) <- OUT[2], in turn
//   step 2  OUT[3] <- CH(3)            step 4  OUT[2] <- CH(3)             step 6  OUT[1] <- CH(3)
//
// Source: Patarasuk & Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations, 2009: its second
// half.
#include "impl/algorithms/algorithm.h"

namespace tutti {
namespace {

Shape shape(const Problem& problem) { return {.units_per_block = 1, .largest_message = problem.ranks > 1 ? 1 : 0}; }

int step_count(const Problem& problem, int /*rank*/) { return 2 * problem.ranks - 1; }

Step step(const Problem& problem, int rank, int index) {
  const int ranks = problem.ranks;
  const Operand mine = input(rank, unit(0));
  if (index == 0) return move({output(rank, unit(rank))}, {mine});
  const int round = (index - 1) / 2;
  const int held = (rank + ranks - round) % ranks;
  if (index % 2 == 1) {
    return in_turn(move({channel((rank + 1) % ranks)}, {round == 0 ? mine : output(rank, unit(held))}));
  }
  return move({output(rank, unit((held + ranks - 1) % ranks))}, {channel((rank + ranks - 1) % ranks)});
}

Cost cost(const Problem& problem, int /*rank*/) {
  const int ranks = problem.ranks;
  return {.steps = 2 * ranks - 1, .messages = ranks - 1, .units = ranks - 1, .depth = 3 * ranks - 2};
}

}  // namespace

extern const Algorithm k_all_gather_ring;
const Algorithm k_all_gather_ring{
    .collective = Collective::all_gather,
    .name = "ring",
    .summary = "once around the ring, neighbours only; P-1 rounds over channels",
    .source = "Patarasuk & Yuan 2009, doi:10.1016/j.jpdc.2008.09.002",
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
