// SPDX-License-Identifier: Apache-2.0
// Direct scan: rank t goes through unit t of everybody's input in rank order. It stores each prefix to the output of
// the rank that it belongs to. So all ranks share the work and every input is read once. It keeps the prefix in scratch
// of its own.
//
// P = 3, rank 0:
//   step 0  SIGNAL {1,2} phase 1, read IN[t], write OUT[t]    step 3  OUT[0]@1, SCR[0] <- SCR[0] op IN[0]@1
//   step 1  WAIT {1,2} phase 1                                step 4  OUT[0]@2 <- SCR[0] op IN[0]@2
//   step 2  OUT[0], SCR[0] <- IN[0]                           step 5  SIGNAL {1,2} phase 2
//                                                             step 6  WAIT {1,2} phase 2
#include "impl/algorithms/algorithm.h"

namespace tutti {
namespace {

Shape shape(const Problem& problem) {
  const bool is_group = problem.ranks > 1;
  return {.units_per_block = problem.ranks,
          .scratch_units = is_group ? 1 : 0,
          .exposes_input = is_group,
          .exposes_output = is_group};
}

int step_count(const Problem& problem, int /*rank*/) { return problem.ranks > 1 ? problem.ranks + 4 : 1; }

Step step(const Problem& problem, int rank, int index) {
  const int ranks = problem.ranks;
  const UnitSet mine = unit(rank);
  if (ranks == 1) return move({output(rank, mine)}, {input(rank, mine)});
  if (index == 0) {
    return signal(others(rank, ranks), 1, {.space = Space::input, .units = unit(0), .per_target = 1},
                  {.space = Space::output, .units = unit(0), .per_target = 1});
  }
  if (index == 1) return wait(others(rank, ranks), 1);
  if (index == ranks + 2) return signal(others(rank, ranks), 2);
  if (index == ranks + 3) return wait(others(rank, ranks), 2);
  const int owner = index - 2;
  const Operand prefix = scratch(rank, unit(0));
  Operands<4> destinations{output(owner, mine)}, sources;
  if (owner + 1 < ranks) destinations.push_back(prefix);
  if (owner > 0) sources.push_back(prefix);
  sources.push_back(input(owner, mine));
  return move(destinations, sources);
}

Cost cost(const Problem& problem, int rank) {
  const int ranks = problem.ranks;
  return {
      .steps = step_count(problem, rank), .messages = 0, .units = 2 * (ranks - 1), .depth = ranks > 1 ? ranks + 2 : 1};
}

}  // namespace

extern const Algorithm k_scan_direct;
const Algorithm k_scan_direct{
    .collective = Collective::scan,
    .name = "direct",
    .summary = "each rank scans its slice of all inputs and stores it to all outputs; least memory traffic",
    .source = "two-shot all_reduce, with every prefix stored",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .synchronises = true,
    .turning = Turning::columns,
};

}  // namespace tutti
