// SPDX-License-Identifier: Apache-2.0
// Direct sendrecv: everybody reads the input of the rank before. In place the inputs are staged in scratch, as private
// buffers are: the next rank may still read what this one is about to write.
//
// P = 4, rank 0 (next 1, previous 3):
//   step 0  SIGNAL {1} phase 1, read IN[0]    step 3  SIGNAL {3} phase 2
//   step 1  WAIT {3} phase 1                  step 4  WAIT {1} phase 2
//   step 2  OUT[0] <- IN[0]@3
#include "impl/algorithms/algorithm.h"

namespace tutti {
namespace {

Shape shape(const Problem& problem) { return {.units_per_block = 1, .exposes_input = problem.ranks > 1}; }

int step_count(const Problem& problem, int /*rank*/) { return problem.ranks > 1 ? 5 : 1; }

Step step(const Problem& problem, int rank, int index) {
  const int next = (rank + 1) % problem.ranks;
  const int previous = (rank + problem.ranks - 1) % problem.ranks;
  if (problem.ranks == 1) return move({output(rank, unit(0))}, {input(rank, unit(0))});
  switch (index) {
    case 0:
      return signal(only(next), 1, {.space = Space::input, .units = unit(0)});
    case 1:
      return wait(only(previous), 1);
    case 2:
      return move({output(rank, unit(0))}, {input(previous, unit(0))});
    case 3:
      return closing_reads(signal(only(previous), 2));
    default:
      return closing_reads(wait(only(next), 2));
  }
}

Cost cost(const Problem& problem, int rank) {
  const bool is_group = problem.ranks > 1;
  return {.steps = step_count(problem, rank), .messages = 0, .units = is_group ? 1 : 0, .depth = is_group ? 3 : 1};
}

}  // namespace

extern const Algorithm k_sendrecv_direct;
const Algorithm k_sendrecv_direct{
    .collective = Collective::sendrecv,
    .name = "direct",
    .summary = "everyone reads the input of the rank before; one round of reads, for shared memory",
    .source = "a ring of remote reads",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .stages_in_place = true,
};

}  // namespace tutti
