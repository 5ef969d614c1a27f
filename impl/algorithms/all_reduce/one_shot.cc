// SPDX-License-Identifier: Apache-2.0
// One-shot all_reduce: everybody puts its input into scratch and reads everybody's. One round, no trailing
// synchronisation (scratch is protected by its generation), P inputs read by each rank: the best for small messages. At
// most 48 bytes of scratch lie in the flag's own cache line, so that one line per rank carries flag and data.
//
// P = 4, rank 0:
//   step 0  SCR[0] <- IN[0]
//   step 1  SIGNAL {1,2,3} phase 1, read SCR[0]
//   step 2  WAIT {1,2,3} phase 1
//   step 3  OUT[0] <- IN[0] op SCR[0]@1 op SCR[0]@2 op SCR[0]@3 (final)
//
// The own input comes from IN and not from the own scratch, in rank order all the same. The peers are taking the line
// that the scratch lies in, and reading it just then costs a transfer.
#include "impl/algorithms/algorithm.h"

namespace tutti {
namespace {

Shape shape(const Problem& problem) { return {.units_per_block = 1, .scratch_units = problem.ranks > 1 ? 1 : 0}; }

int step_count(const Problem& problem, int /*rank*/) { return problem.ranks > 1 ? 4 : 1; }

/// Every rank's value, in rank order, so that all ranks get the same bits.
Operands<4> sources(int ranks, int rank) {
  const Operand shown = scratch(rank, unit(0));
  Operands<4> list;
  if (rank > 0) list.push_back(on({.first = 0, .stride = 1, .n = rank}, shown));
  list.push_back(input(rank, unit(0)));
  if (rank + 1 < ranks) list.push_back(on({.first = rank + 1, .stride = 1, .n = ranks - rank - 1}, shown));
  return list;
}

Step step(const Problem& problem, int rank, int index) {
  const int ranks = problem.ranks;
  const UnitSet all = unit(0);
  if (ranks == 1) return final_move({output(rank, all)}, {input(rank, all)});
  switch (index) {
    case 0:
      return move({scratch(rank, all)}, {input(rank, all)});
    case 1:
      return signal(others(rank, ranks), 1, {.space = Space::scratch, .units = all});
    case 2:
      return wait(others(rank, ranks), 1);
    default:
      return final_move({output(rank, all)}, sources(ranks, rank));
  }
}

Cost cost(const Problem& problem, int rank) {
  return {.steps = step_count(problem, rank),
          .messages = 0,
          .units = problem.ranks - 1,
          .depth = problem.ranks > 1 ? 3 : 1};
}

}  // namespace

extern const Algorithm k_all_reduce_one_shot;
const Algorithm k_all_reduce_one_shot{
    .collective = Collective::all_reduce,
    .name = "one_shot",
    .summary = "everyone reads everyone's input from scratch; one round, for small messages",
    .source = "in the manner of Open MPI's XHC (inline) and of one-shot GPU kernels",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .synchronises = true,
};

}  // namespace tutti
