// SPDX-License-Identifier: Apache-2.0
// Pairwise all_to_all. In round i = 0..P-1 rank r exchanges one block with rank (i - r) mod P. It copies its own block
// in the round in which that is itself. The pairing is its own inverse, so block q leaves for rank q in the same round
// in which rank q's block takes its place. The two take turns: slice k leaves before slice k arrives, so that one slot
// is enough and the exchange is safe in place, for every P.
//
// P = 3, rank 0:
//   step 0  OUT[0] <- IN[0]    step 1  CH(1) <- IN[1], in turn    step 3  CH(2) <- IN[2], in turn
//                              step 2  OUT[1] <- CH(1)            step 4  OUT[2] <- CH(2)
#include "impl/algorithms/algorithm.h"

namespace tutti {
namespace {

Shape shape(const Problem& problem) { return {.units_per_block = 1, .largest_message = problem.ranks > 1 ? 1 : 0}; }

int step_count(const Problem& problem, int /*rank*/) { return 2 * problem.ranks - 1; }

Step step(const Problem& problem, int rank, int index) {
  const int ranks = problem.ranks;
  const int own_round = 2 * rank % ranks;
  if (index == 2 * own_round) return move({output(rank, unit(rank))}, {input(rank, unit(rank))});
  if (index > 2 * own_round) ++index;  // the round with itself has one step, not two
  const int peer = (index / 2 + ranks - rank) % ranks;
  if (index % 2 == 0) return in_turn(move({channel(peer)}, {input(rank, unit(peer))}));
  return move({output(rank, unit(peer))}, {channel(peer)});
}

Cost cost(const Problem& problem, int rank) {
  const int ranks = problem.ranks;
  // A round is send, transfer, receive. Ranks that copy their own block in different rounds shift against each other.
  // So from three ranks on somebody waits in every one of the P rounds.
  const int depth = ranks > 2 ? 3 * ranks : 3 * ranks - 2;
  return {.steps = step_count(problem, rank), .messages = ranks - 1, .units = ranks - 1, .depth = depth};
}

}  // namespace

extern const Algorithm k_all_to_all_pairwise;
const Algorithm k_all_to_all_pairwise{
    .collective = Collective::all_to_all,
    .name = "pairwise",
    .summary = "one exchange per round over channels; P rounds, in place without staging",
    .source = "pairwise exchange, as in MPICH and Open MPI",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .least_slots = one_slot,
    .synchronises = true,
    .takes_counts = true,
};

}  // namespace tutti
