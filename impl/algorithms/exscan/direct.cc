// SPDX-License-Identifier: Apache-2.0
// Direct exscan: rank t goes through unit t of everybody's input in rank order. It stores each prefix to the output of
// the rank after, so that all ranks share the work. It keeps the prefixes in scratch of its own, two in turn. In place
// a rank's output is its input: so the next prefix is made before the one that belongs there is stored.
//
// P = 4, rank 0:
//   step 0  SIGNAL {1,2,3} phase 1, read IN[t]    step 4  OUT[0]@3 <- SCR[0] op IN[0]@2
//   step 1  WAIT {1,2,3} phase 1                  step 5  OUT[0]@2 <- SCR[0]
//   step 2  SCR[0] <- IN[0] op IN[0]@1            step 6  SIGNAL {1,2,3} phase 2
//   step 3  OUT[0]@1 <- IN[0]                     step 7  WAIT {1,2,3} phase 2
#include <algorithm>

#include "impl/algorithms/algorithm.h"

namespace tutti {
namespace {

Shape shape(const Problem& problem) {
  const bool is_group = problem.ranks > 1;
  return {.units_per_block = problem.ranks,
          .scratch_units = std::clamp(problem.ranks - 3, 0, 2),
          .exposes_input = is_group,
          .exposes_output = is_group};
}

/// For each rank but the first and the last two MOVEs: the prefix behind it, and the one before it.
int moves_of(int ranks) { return ranks == 2 ? 1 : 2 * (ranks - 2); }

int step_count(const Problem& problem, int /*rank*/) { return problem.ranks > 1 ? moves_of(problem.ranks) + 4 : 0; }

/// Nobody gets the input of the last rank, and the first one gets nothing.
Step announce(int rank, int ranks) {
  Exposure read, write;
  if (rank + 1 < ranks) read = {.space = Space::input, .units = unit(0), .per_target = 1};
  if (rank > 0) write = {.space = Space::output, .units = unit(0), .per_target = 1};
  return signal(others(rank, ranks), 1, read, write);
}

/// Where rank `rank` finds unit `rank` of what the ranks from 0 to `last` come to.
Operand prefix_at(int rank, int last) { return last == 0 ? input(0, unit(rank)) : scratch(rank, unit((last - 1) % 2)); }

Step step(const Problem& problem, int rank, int index) {
  const int ranks = problem.ranks;
  const UnitSet mine = unit(rank);
  const int last = step_count(problem, rank) - 1;
  if (index == 0) return announce(rank, ranks);
  if (index == 1) return wait(others(rank, ranks), 1);
  if (index == last - 1) return signal(others(rank, ranks), 2);
  if (index == last) return wait(others(rank, ranks), 2);
  const int owner = index / 2;
  const Operand before = prefix_at(rank, owner - 1);
  if (index % 2 == 1 || ranks == 2) return move({output(owner, mine)}, {before});
  const Operand behind = owner + 2 == ranks ? output(owner + 1, mine) : prefix_at(rank, owner);
  return move({behind}, {before, input(owner, mine)});
}

Cost cost(const Problem& problem, int rank) {
  const int ranks = problem.ranks;
  if (ranks == 1) return {.steps = 0, .messages = 0, .units = 0, .depth = 0};
  const int units = ranks == 2 ? 1 : 2 * ranks - (rank + 1 == ranks ? 2 : 3);
  return {.steps = step_count(problem, rank), .messages = 0, .units = units, .depth = moves_of(ranks) + 2};
}

}  // namespace

extern const Algorithm k_exscan_direct;
const Algorithm k_exscan_direct{
    .collective = Collective::exscan,
    .name = "direct",
    .summary = "each rank scans its slice of all inputs and stores it to all outputs; least memory traffic",
    .source = "two-shot all_reduce, with every prefix stored to the rank after",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .synchronises = true,
    .turning = Turning::columns,
};

}  // namespace tutti
