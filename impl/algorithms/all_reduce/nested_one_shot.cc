// SPDX-License-Identifier: Apache-2.0
// Nested one-shot all_reduce: the first rank of each cache adds up what its cache has put into scratch, reads the sums
// of all caches, and gives its cache the result. One line per cache crosses to each other cache, in one round; for
// small messages.
//
// P = 4, L = 2
//   rank 0                                              rank 1
//   step 0  WAIT {1} phase 1                            step 0  SCR[0] <- IN[0]
//   step 1  SCR[0] <- IN[0] op SCR[0]@1                 step 1  SIGNAL {0} phase 1, read SCR[0]
//   step 2  SIGNAL {0,2} phase 2, read SCR[0]           step 2  WAIT {0} phase 3
//   step 3  WAIT {0,2} phase 2                          step 3  OUT[0] <- SCR[1]@0
//   step 4  OUT[0], SCR[1] <- SCR[0]@0 op SCR[0]@2 (final)
//   step 5  SIGNAL {1} phase 3, read SCR[1]
#include "impl/algorithms/nested.h"

namespace tutti {
namespace {

using nested::Place;

Shape shape(const Problem& problem) { return {.units_per_block = 1, .scratch_units = problem.ranks > 1 ? 2 : 0}; }

int step_count(const Problem& problem, int rank) {
  const Place place(problem, rank);
  if (rank != place.first) return 4;
  return 1 + (place.size > 1 ? 2 : 0) + (place.caches > 1 ? 3 : 0);
}

Step step_of_member(int rank, int leader, int index) {
  switch (index) {
    case 0:
      return move({scratch(rank, unit(0))}, {input(rank, unit(0))});
    case 1:
      return signal(only(leader), 1, {.space = Space::scratch, .units = unit(0)});
    case 2:
      return wait(only(leader), 3);
    default:
      return move({output(rank, unit(0))}, {scratch(leader, unit(1))});
  }
}

Step step(const Problem& problem, int rank, int index) {
  const Place place(problem, rank);
  if (rank != place.first) return step_of_member(rank, place.first, index);
  const bool leads = place.size > 1;
  const RankSet members = place.after(rank);
  if (leads && index == 0) return wait(members, 1);
  if (leads && index == step_count(problem, rank) - 1) {
    return signal(members, 3, {.space = Space::scratch, .units = unit(1)});
  }
  Operands<4> own{input(rank, unit(0))};
  if (leads) own.push_back(on(members, scratch(rank, unit(0))));
  Operands<4> results{output(rank, unit(0))};
  if (leads) results.push_back(scratch(rank, unit(1)));
  if (place.caches == 1) return final_move(results, own);
  switch (index - (leads ? 1 : 0)) {
    case 0:
      return move({scratch(rank, unit(0))}, own);
    case 1:
      return signal(place.firsts(), 2, {.space = Space::scratch, .units = unit(0)});
    case 2:
      return wait(place.firsts(), 2);
    default:
      return final_move(results, {on(place.firsts(), scratch(rank, unit(0)))});
  }
}

Cost cost(const Problem& problem, int rank) {
  const Place place(problem, rank);
  const bool leads = rank == place.first;
  return {.steps = step_count(problem, rank),
          .messages = 0,
          .units = leads ? place.size - 1 + place.caches - 1 : 1,
          .depth = 1 + (place.width > 1 ? 4 : 0) + (place.caches > 1 ? 2 : 0)};
}

}  // namespace

extern const Algorithm k_all_reduce_nested_one_shot;
const Algorithm k_all_reduce_nested_one_shot{
    .collective = Collective::all_reduce,
    .name = "nested_one_shot",
    .summary = "one rank of each cache adds up its cache's scratch, reads all such sums and tells its cache",
    .source = nested::kSource,
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .synchronises = true,
    .is_by_caches = true,
};

}  // namespace tutti
