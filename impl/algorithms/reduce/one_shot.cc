// SPDX-License-Identifier: Apache-2.0
// One-shot reduce: every other rank puts its input into scratch, and the root combines all of it in one MOVE. Data go
// one way, from each rank to the root. Nobody waits for the root within an operation: scratch is protected by its
// generation. At most 48 bytes of scratch lie in the flag's own cache line, so that one line per rank carries flag and
// data: the best for small messages.
//
// P = 4, rank 0, the root:
//   step 0  WAIT {1,2,3} phase 1
//   step 1  OUT[0] <- IN[0] op SCR[0]@1 op SCR[0]@2 op SCR[0]@3 (final)
// rank 1:
//   step 0  SCR[0] <- IN[0]
//   step 1  SIGNAL {0} phase 1, read SCR[0]
#include "impl/algorithms/algorithm.h"

namespace tutti {
namespace {

Shape shape(const Problem& problem) { return {.units_per_block = 1, .scratch_units = problem.ranks > 1 ? 1 : 0}; }

int step_count(const Problem& problem, int /*rank*/) { return problem.ranks > 1 ? 2 : 1; }

/// Every rank's value, in rank order.
Operands<4> sources(const Problem& problem) {
  const int root = problem.root;
  const Operand shown = scratch(root, unit(0));
  Operands<4> list;
  if (root > 0) list.push_back(on({.first = 0, .stride = 1, .n = root}, shown));
  list.push_back(input(root, unit(0)));
  if (root + 1 < problem.ranks) {
    list.push_back(on({.first = root + 1, .stride = 1, .n = problem.ranks - root - 1}, shown));
  }
  return list;
}

Step step(const Problem& problem, int rank, int index) {
  const UnitSet all = unit(0);
  if (problem.ranks == 1) return final_move({output(rank, all)}, {input(rank, all)});
  if (rank == problem.root) {
    return index == 0 ? wait(others(rank, problem.ranks), 1) : final_move({output(rank, all)}, sources(problem));
  }
  return index == 0 ? move({scratch(rank, all)}, {input(rank, all)})
                    : signal(only(problem.root), 1, {.space = Space::scratch, .units = all});
}

Cost cost(const Problem& problem, int rank) {
  const bool reads = problem.ranks > 1 && rank == problem.root;
  return {.steps = step_count(problem, rank),
          .messages = 0,
          .units = reads ? problem.ranks - 1 : 0,
          .depth = problem.ranks > 1 ? 3 : 1};
}

}  // namespace

extern const Algorithm k_reduce_one_shot;
const Algorithm k_reduce_one_shot{
    .collective = Collective::reduce,
    .name = "one_shot",
    .summary = "the root reads everyone's input from scratch; one round, for small messages",
    .source = "flat reduce, as in MPICH's release_gather and Open MPI's XHC",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
};

}  // namespace tutti
