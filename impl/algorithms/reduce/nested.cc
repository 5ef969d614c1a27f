// SPDX-License-Identifier: Apache-2.0
// Nested reduce: one rank of each cache adds up what its cache has put into scratch, and the root adds up these sums.
// One sum of each cache crosses. Data go one way, so nobody waits for who reads: scratch is protected by its
// generation. The order is that of the ranks.
//
// The root leads its cache, and the first rank leads each other one.
//
// P = 4, L = 2, root 0
//   rank 0, the root                          rank 1
//   step 0  WAIT {1} phase 1                  step 0  SCR[0] <- IN[0]
//   step 1  SCR[0] <- IN[0] op SCR[0]@1       step 1  SIGNAL {0} phase 1, read SCR[0]
//   step 2  WAIT {2} phase 2
//   step 3  OUT[0] <- SCR[0] op SCR[0]@2 (final)
//   rank 2                                    rank 3
//   step 0  WAIT {3} phase 1                  step 0  SCR[0] <- IN[0]
//   step 1  SCR[0] <- IN[0] op SCR[0]@3       step 1  SIGNAL {2} phase 1, read SCR[0]
//   step 2  SIGNAL {0} phase 2, read SCR[0]
#include "impl/algorithms/nested.h"

namespace tutti {
namespace {

using nested::leader_of;
using nested::Place;

Operands<4> on_both_sides(const RankSet& before, const Operand& own, const RankSet& after) {
  const Operand shown = scratch(own.ranks.first, unit(0));
  Operands<4> list;
  if (before.n > 0) list.push_back(on(before, shown));
  list.push_back(own);
  if (after.n > 0) list.push_back(on(after, shown));
  return list;
}

int waits_for(const RankSet& before, const RankSet& after) { return (before.n > 0 ? 1 : 0) + (after.n > 0 ? 1 : 0); }

Shape shape(const Problem& problem) { return {.units_per_block = 1, .scratch_units = problem.ranks > 1 ? 1 : 0}; }

/// WAITs for its cache, the sum of that where other caches have one too, WAITs for these, and the sum of all.
int steps_of_root(const Problem& problem) {
  const Place place(problem, problem.root);
  const int inner = waits_for(place.before(problem.root), place.after(problem.root));
  const int outer = waits_for(place.firsts_before(), place.firsts_after());
  return inner + (inner > 0 && outer > 0 ? 1 : 0) + outer + 1;
}

Step step_of_root(const Problem& problem, int index) {
  const int root = problem.root;
  const Place place(problem, root);
  const UnitSet all = unit(0);
  const RankSet before = place.before(root), after = place.after(root);
  const RankSet firsts_before = place.firsts_before(), firsts_after = place.firsts_after();
  const int inner = waits_for(before, after);
  const int outer = waits_for(firsts_before, firsts_after);
  if (index < inner) return wait(index == 0 && before.n > 0 ? before : after, 1);
  index -= inner;
  if (outer == 0) return final_move({output(root, all)}, on_both_sides(before, input(root, all), after));
  if (inner > 0 && index-- == 0) {
    return move({scratch(root, all)}, on_both_sides(before, input(root, all), after));
  }
  if (index < outer) return wait(index == 0 && firsts_before.n > 0 ? firsts_before : firsts_after, 2);
  const Operand own = inner > 0 ? scratch(root, all) : input(root, all);
  return final_move({output(root, all)}, on_both_sides(firsts_before, own, firsts_after));
}

/// Whether a rank that is not the root adds up its cache.
bool adds_up(const Problem& problem, const Place& place, int rank) {
  return rank == leader_of(problem, place) && place.size > 1;
}

int step_count(const Problem& problem, int rank) {
  if (rank == problem.root) return steps_of_root(problem);
  return adds_up(problem, Place(problem, rank), rank) ? 3 : 2;
}

Step step(const Problem& problem, int rank, int index) {
  if (rank == problem.root) return step_of_root(problem, index);
  const Place place(problem, rank);
  const UnitSet all = unit(0);
  const int leader = leader_of(problem, place);
  const bool adds = adds_up(problem, place, rank);
  const RankSet members = adds ? place.after(rank) : RankSet{.n = 0};
  switch (adds ? index : index + 1) {
    case 0:
      return wait(members, 1);
    case 1:
      return move({scratch(rank, all)}, on_both_sides({.n = 0}, input(rank, all), members));
    default: {
      const bool leads = rank == leader;
      return signal(only(leads ? problem.root : leader), leads ? 2 : 1, {.space = Space::scratch, .units = all});
    }
  }
}

Cost cost(const Problem& problem, int rank) {
  const Place place(problem, rank);
  const Place of_root(problem, problem.root);
  const bool leads = rank == leader_of(problem, place);
  const bool others_add = of_root.others_share(problem.ranks);
  const bool root_adds = of_root.size > 1 && of_root.caches > 1;
  return {.steps = step_count(problem, rank),
          .messages = 0,
          .units = (leads ? place.size - 1 : 0) + (rank == problem.root ? place.caches - 1 : 0),
          .depth = problem.ranks == 1 ? 1
                   : others_add       ? 5
                   : root_adds        ? 4
                                      : 3};
}

}  // namespace

extern const Algorithm k_reduce_nested;
const Algorithm k_reduce_nested{
    .collective = Collective::reduce,
    .name = "nested",
    .summary = "one rank of each cache adds up its cache's scratch, and the root adds up these sums; data go one way",
    .source = nested::kSource,
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .is_by_caches = true,
};

}  // namespace tutti
