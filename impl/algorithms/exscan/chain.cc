// SPDX-License-Identifier: Apache-2.0
// Chain exscan: each rank keeps what arrives and passes it on with its own input put behind, slice by slice in turn.
// It keeps it in scratch, for in place its output is the input that it has yet to pass on.
//
// P = 4: rank 0                    rank 1                                 rank 3
//        step 0  CH(1) <- IN[0]    step 0  SCR[0] <- CH(0), in turn       step 0  OUT[0] <- CH(2)
//                                  step 1  CH(2) <- SCR[0] op IN[0]
//                                  step 2  OUT[0] <- SCR[0]
#include "impl/algorithms/algorithm.h"

namespace tutti {
namespace {

Shape shape(const Problem& problem) {
  return {
      .units_per_block = 1, .scratch_units = problem.ranks > 2 ? 1 : 0, .largest_message = problem.ranks > 1 ? 1 : 0};
}

bool is_last(const Problem& problem, int rank) { return rank + 1 == problem.ranks; }

int step_count(const Problem& problem, int rank) {
  if (rank == 0) return is_last(problem, rank) ? 0 : 1;
  return is_last(problem, rank) ? 1 : 3;
}

Step step(const Problem& problem, int rank, int index) {
  const Operand in = input(rank, unit(0)), out = output(rank, unit(0)), kept = scratch(rank, unit(0));
  if (rank == 0) return move({channel(1)}, {in});
  if (is_last(problem, rank)) return move({out}, {channel(rank - 1)});
  switch (index) {
    case 0:
      return in_turn(move({kept}, {channel(rank - 1)}));
    case 1:
      return move({channel(rank + 1)}, {kept, in});
    default:
      return move({out}, {kept});
  }
}

Cost cost(const Problem& problem, int rank) {
  const int sent = is_last(problem, rank) ? 0 : 1;
  return {.steps = step_count(problem, rank), .messages = sent, .units = sent, .depth = 3 * (problem.ranks - 1)};
}

}  // namespace

extern const Algorithm k_exscan_chain;
const Algorithm k_exscan_chain{
    .collective = Collective::exscan,
    .name = "chain",
    .summary = "each rank keeps what arrives and passes it on with its own, slice by slice; P-1 hops",
    .source = "linear pipeline, as in Open MPI's linear exscan",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .least_slots = one_slot,
};

}  // namespace tutti
