// SPDX-License-Identifier: Apache-2.0
// Ping-pong over channels, in pairs of neighbouring ranks: the even one sends its whole input, the odd one sends it
// back when it has all of it. The last of an odd number of ranks copies. Where one pair plays, all others
// have no steps.
//
// P = 3: rank 0                     rank 1                     rank 2
//        step 0  CH(1) <- IN[0]     step 0  OUT[0] <- CH(0)    step 0  OUT[0] <- IN[0]
//        step 1  OUT[0] <- CH(1)    step 1  CH(0) <- OUT[0]
#include "impl/algorithms/algorithm.h"

namespace tutti {
namespace {

Shape shape(const Problem& problem) { return {.units_per_block = 1, .largest_message = problem.ranks > 1 ? 1 : 0}; }

bool is_idle(const Problem& problem, int rank) {
  return problem.pairing.is_one_pair() && partner_of(problem, rank) < 0;
}
bool is_alone(const Problem& problem, int rank) {
  return !problem.pairing.is_one_pair() && partner_of(problem, rank) < 0;
}

int step_count(const Problem& problem, int rank) {
  if (is_idle(problem, rank)) return 0;
  return is_alone(problem, rank) ? 1 : 2;
}

Step step(const Problem& problem, int rank, int index) {
  const Operand in = input(rank, unit(0)), out = output(rank, unit(0));
  if (is_alone(problem, rank)) return move({out}, {in});
  const int other = partner_of(problem, rank);
  if (rank < other) return index == 0 ? move({channel(other)}, {in}) : move({out}, {channel(other)});
  return index == 0 ? move({out}, {channel(other)}) : move({channel(other)}, {out});
}

Cost cost(const Problem& problem, int rank) {
  const int sent = partner_of(problem, rank) < 0 ? 0 : 1;
  return {.steps = step_count(problem, rank), .messages = sent, .units = sent, .depth = problem.ranks > 1 ? 6 : 1};
}

}  // namespace

extern const Algorithm k_pingpong_channel;
const Algorithm k_pingpong_channel{
    .collective = Collective::pingpong,
    .name = "channel",
    .summary = "even ranks send to the next one, which sends back what it has received",
    .source = "ping-pong, as in the OSU and Intel MPI benchmarks",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .least_slots = one_slot,
};

}  // namespace tutti
