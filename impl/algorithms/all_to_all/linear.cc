// SPDX-License-Identifier: Apache-2.0
// Linear all_to_all: all sends and then all receives, every one of them in turn with the next. The first slices of
// every block leave, the first slices of every block arrive, then the next ones. One slot per channel is enough for any
// lengths. No pair waits for another's long block to pass as a whole. In place, slice k of every block has left before
// slice k of any arrives.
//
// P = 3, rank 0:
//   step 0  OUT[0] <- IN[0]    step 1  CH(1) <- IN[1], in turn    step 3  OUT[2] <- CH(2), in turn
//                              step 2  CH(2) <- IN[2], in turn    step 4  OUT[1] <- CH(1)
#include "impl/algorithms/algorithm.h"

namespace tutti {
namespace {

Shape shape(const Problem& problem) { return {.units_per_block = 1, .largest_message = problem.ranks > 1 ? 1 : 0}; }

int step_count(const Problem& problem, int /*rank*/) { return 2 * problem.ranks - 1; }

Step step(const Problem& problem, int rank, int index) {
  const int ranks = problem.ranks;
  if (index == 0) return move({output(rank, unit(rank))}, {input(rank, unit(rank))});
  if (index < ranks) {
    const int to = (rank + index) % ranks;
    return in_turn(move({channel(to)}, {input(rank, unit(to))}));
  }
  const int from = (rank + 2 * ranks - 1 - index) % ranks;
  const Step receive = move({output(rank, unit(from))}, {channel(from)});
  return index + 1 < step_count(problem, rank) ? in_turn(receive) : receive;
}

Cost cost(const Problem& problem, int rank) {
  const int ranks = problem.ranks;
  // Own block, P-1 sends, P-1 receives; of two ranks, the one waits for the other's transfer.
  const int depth = ranks == 2 ? 4 : 2 * ranks - 1;
  return {.steps = step_count(problem, rank), .messages = ranks - 1, .units = ranks - 1, .depth = depth};
}

}  // namespace

extern const Algorithm k_all_to_all_linear;
const Algorithm k_all_to_all_linear{
    .collective = Collective::all_to_all,
    .name = "linear",
    .summary = "all sends, then all receives, slice by slice in turn; one round over channels",
    .source = "linear exchange with everything posted, as in Open MPI",
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
