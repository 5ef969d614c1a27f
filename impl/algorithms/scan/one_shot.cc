// SPDX-License-Identifier: Apache-2.0
// One-shot scan: everybody puts its input into scratch and reads those of the ranks before. One round, no trailing
// synchronisation, and the last rank reads P inputs: the best for small messages. As one_shot all_reduce, which says
// why the own input is not read from scratch.
//
// P = 4, rank 1:
//   step 0  SCR[0] <- IN[0]
//   step 1  SIGNAL {2,3} phase 1, read SCR[0]
//   step 2  WAIT {0} phase 1
//   step 3  OUT[0] <- SCR[0]@0 op IN[0]
#include "impl/algorithms/algorithm.h"

namespace tutti {
namespace {

Shape shape(const Problem& problem) { return {.units_per_block = 1, .scratch_units = problem.ranks > 1 ? 1 : 0}; }

/// The first rank waits for nobody, the last one shows nothing.
bool shows(const Problem& problem, int rank) { return rank + 1 < problem.ranks; }

int step_count(const Problem& problem, int rank) { return 1 + (shows(problem, rank) ? 2 : 0) + (rank > 0 ? 1 : 0); }

Step step(const Problem& problem, int rank, int index) {
  const Operand in = input(rank, unit(0)), shown = scratch(rank, unit(0));
  if (!shows(problem, rank)) index += 2;
  const RankSet before{.first = 0, .stride = 1, .n = rank};
  const RankSet after{.first = (rank + 1) % problem.ranks, .stride = 1, .n = problem.ranks - rank - 1};
  if (index == 0) return move({shown}, {in});
  if (index == 1) return signal(after, 1, {.space = Space::scratch, .units = unit(0)});
  if (index == 2 && rank > 0) return wait(before, 1);
  Operands<4> sources;
  if (rank > 0) sources.push_back(on(before, shown));
  sources.push_back(in);
  return move({output(rank, unit(0))}, sources);
}

Cost cost(const Problem& problem, int rank) {
  return {.steps = step_count(problem, rank), .messages = 0, .units = rank, .depth = problem.ranks > 1 ? 3 : 1};
}

}  // namespace

extern const Algorithm k_scan_one_shot;
const Algorithm k_scan_one_shot{
    .collective = Collective::scan,
    .name = "one_shot",
    .summary = "everyone reads the inputs of the ranks before from scratch; one round, for small messages",
    .source = "one-shot all_reduce, of the ranks up to one's own",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
};

}  // namespace tutti
