// SPDX-License-Identifier: Apache-2.0
// Direct ping-pong, in pairs of neighbouring ranks: the odd one reads the even one's input, then the even one reads
// what the odd one has stored. The last of an odd number of ranks copies. Where one
// pair plays, all others have no steps.
//
// P = 3: rank 0                                    rank 1                                     rank 2
//        step 0  SIGNAL {1} phase 1, read IN[0]    step 0  WAIT {0} phase 1                   step 0  OUT[0] <- IN[0]
//        step 1  WAIT {1} phase 2                  step 1  OUT[0] <- IN[0]@0
//        step 2  OUT[0] <- OUT[0]@1                step 2  SIGNAL {0} phase 2, read OUT[0]
//        step 3  SIGNAL {1} phase 3                step 3  WAIT {0} phase 3
#include "impl/algorithms/algorithm.h"

namespace tutti {
namespace {

Shape shape(const Problem& problem) {
  const bool is_group = problem.ranks > 1;
  return {.units_per_block = 1, .exposes_input = is_group, .exposes_output = is_group};
}

bool is_idle(const Problem& problem, int rank) {
  return problem.pairing.is_one_pair() && partner_of(problem, rank) < 0;
}
bool is_alone(const Problem& problem, int rank) {
  return !problem.pairing.is_one_pair() && partner_of(problem, rank) < 0;
}

int step_count(const Problem& problem, int rank) {
  if (is_idle(problem, rank)) return 0;
  return is_alone(problem, rank) ? 1 : 4;
}

Step first_of_pair(int rank, int other, int index) {
  switch (index) {
    case 0:
      return signal(only(other), 1, {.space = Space::input, .units = unit(0)});
    case 1:
      return wait(only(other), 2);
    case 2:
      return move({output(rank, unit(0))}, {output(other, unit(0))});
    default:
      return closing_reads(signal(only(other), 3));
  }
}

Step second_of_pair(int rank, int other, int index) {
  switch (index) {
    case 0:
      return wait(only(other), 1);
    case 1:
      return move({output(rank, unit(0))}, {input(other, unit(0))});
    case 2:
      return signal(only(other), 2, {.space = Space::output, .units = unit(0)});
    default:
      return closing_reads(wait(only(other), 3));
  }
}

Step step(const Problem& problem, int rank, int index) {
  if (is_alone(problem, rank)) return move({output(rank, unit(0))}, {input(rank, unit(0))});
  const int other = partner_of(problem, rank);
  return rank < other ? first_of_pair(rank, other, index) : second_of_pair(rank, other, index);
}

Cost cost(const Problem& problem, int rank) {
  return {.steps = step_count(problem, rank),
          .messages = 0,
          .units = partner_of(problem, rank) < 0 ? 0 : 1,
          .depth = problem.ranks > 1 ? 5 : 1};
}

}  // namespace

extern const Algorithm k_pingpong_direct;
const Algorithm k_pingpong_direct{
    .collective = Collective::pingpong,
    .name = "direct",
    .summary = "odd ranks read from the rank before, which reads it back; for shared memory",
    .source = "ping-pong by remote reads",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
};

}  // namespace tutti
