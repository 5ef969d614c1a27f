// SPDX-License-Identifier: Apache-2.0
// Nested broadcast: the root puts its buffer into scratch, one rank of each other cache copies it into its own, and all
// others read the scratch of their cache's. The buffer crosses to each cache once. Nobody waits for who reads: scratch
// is protected by its generation.
//
// The root leads its cache, and the first rank leads each other one. The root has two sets of leaders and two of ranks
// of its cache, before and after it, so up to four SIGNALs; root 0 has two.
//
// P = 4, L = 2, root 0
//   rank 0, the root                          rank 1
//   step 0  SCR[0] <- IN[0]                   step 0  WAIT {0} phase 4
//   step 1  SIGNAL {2} phase 2, read SCR[0]   step 1  OUT[0] <- SCR[0]@0
//   step 2  SIGNAL {1} phase 4, read SCR[0]
//   step 3  OUT[0] <- IN[0]
//   rank 2                                    rank 3
//   step 0  WAIT {0} phase 2                  step 0  WAIT {2} phase 4
//   step 1  SCR[0], OUT[0] <- SCR[0]@0        step 1  OUT[0] <- SCR[0]@2
//   step 2  SIGNAL {3} phase 4, read SCR[0]
#include "impl/algorithms/nested.h"

#include <array>

namespace tutti {
namespace {

using nested::leader_of;
using nested::Place;

/// To whom the root gives its buffer, in this order: set i in phase i + 1.
std::array<RankSet, 4> sets_of_root(const Problem& problem) {
  const Place place(problem, problem.root);
  return {place.firsts_before(), place.firsts_after(), place.before(problem.root), place.after(problem.root)};
}

int signals_of_root(const Problem& problem) {
  const auto sets = sets_of_root(problem);
  return static_cast<int>(std::ranges::count_if(sets, [](const RankSet& set) { return set.n > 0; }));
}

Step signal_of_root(const Problem& problem, int index) {
  const auto sets = sets_of_root(problem);
  int phase = 0;
  for (const RankSet& set : sets) {
    ++phase;
    if (set.n > 0 && index-- == 0) return signal(set, phase, {.space = Space::scratch, .units = unit(0)});
  }
  return {};
}

Shape shape(const Problem& problem) { return {.units_per_block = 1, .scratch_units = problem.ranks > 1 ? 1 : 0}; }

int step_count(const Problem& problem, int rank) {
  if (problem.ranks == 1) return 1;
  if (rank == problem.root) return 2 + signals_of_root(problem);
  const Place place(problem, rank);
  return 2 + (rank == leader_of(problem, place) && place.size > 1 ? 1 : 0);
}

Step step(const Problem& problem, int rank, int index) {
  const UnitSet all = unit(0);
  const int root = problem.root;
  if (rank == root) {
    const int last = step_count(problem, rank) - 1;
    if (index == last) return move({output(rank, all)}, {input(rank, all)});
    return index == 0 ? move({scratch(rank, all)}, {input(rank, all)}) : signal_of_root(problem, index - 1);
  }
  const Place place(problem, rank);
  const int leader = leader_of(problem, place);
  if (rank != leader) {
    if (index == 0) return wait(only(leader), rank < leader ? 3 : 4);
    return move({output(rank, all)}, {scratch(leader, all)});
  }
  if (index == 0) return wait(only(root), rank < root ? 1 : 2);
  if (index == 2) return signal(place.after(rank), 4, {.space = Space::scratch, .units = all});
  if (place.size == 1) return move({output(rank, all)}, {scratch(root, all)});
  return move({scratch(rank, all), output(rank, all)}, {scratch(root, all)});
}

Cost cost(const Problem& problem, int rank) {
  // Through a leader that has ranks to tell.
  const bool has_two_hops = Place(problem, problem.root).others_share(problem.ranks);
  return {.steps = step_count(problem, rank),
          .messages = 0,
          .units = problem.ranks > 1 && rank != problem.root ? 1 : 0,
          .depth = problem.ranks == 1 ? 1
                   : has_two_hops     ? 5
                                      : 3};
}

}  // namespace

extern const Algorithm k_broadcast_nested;
const Algorithm k_broadcast_nested{
    .collective = Collective::broadcast,
    .name = "nested",
    .summary =
        "one rank of each cache reads the root's scratch, and its cache reads that rank's; nobody waits for readers",
    .source = nested::kSource,
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .is_by_caches = true,
};

}  // namespace tutti
