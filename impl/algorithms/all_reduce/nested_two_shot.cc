// SPDX-License-Identifier: Apache-2.0
// Nested two-shot all_reduce on M caches of L ranks. Rank (c, l) adds up slice l, M of the L M units, over its cache.
// Of that slice it then adds up unit c over the ranks (*, l), and reads the other units of the slice where they were
// added up. Every unit goes to all outputs of the cache as it comes. 2 M buffers cross between caches in place of the
// 2 P of two_shot.
//
// P = 4, L = 2, M = 2, rank 0 (units 0 and 1)
//   step 0  SIGNAL {0,1} phase 1, read IN[0,2), write OUT[0,2) (rank t: 2 t further)
//   step 1  WAIT {0,1} phase 1
//   step 2  SCR[0] <- IN[0]@0 op IN[0]@1
//   step 3  SCR[1] <- IN[1]@0 op IN[1]@1
//   step 4  SIGNAL {0,2} phase 2, read SCR[0,2)
//   step 5  WAIT {0,2} phase 2
//   step 6  OUT[0]@{0..1}, SCR[0] <- SCR[0]@0 op SCR[0]@2 (final)
//   step 7  SIGNAL {0,2} phase 3, read SCR[0]
//   step 8  WAIT {0,2} phase 3
//   step 9  OUT[1]@{0..1} <- SCR[1]@2
//   step 10  SIGNAL {0,1} phase 4
//   step 11  WAIT {0,1} phase 4
#include "impl/algorithms/nested.h"

namespace tutti {
namespace {

using nested::EvenPlace;
using nested::flag;

Shape shape(const Problem& problem) {
  const EvenPlace place(problem, 0);
  return {.units_per_block = problem.ranks,
          .scratch_units = place.caches > 1 ? place.caches : 0,
          .exposes_input = place.width > 1,
          .exposes_output = place.width > 1};
}

/// The sums over the cache, two rounds of the column, and a MOVE for each other rank of it.
int steps_between(const EvenPlace& place) { return place.caches > 1 ? place.caches + 5 + place.caches - 1 : 1; }

int step_count(const Problem& problem, int rank) {
  const EvenPlace place(problem, rank);
  return 2 * place.flags_around() + steps_between(place);
}

Step step(const Problem& problem, int rank, int index) {
  const EvenPlace place(problem, rank);
  const int caches = place.caches;
  const int inner = index - place.flags_around();
  if (inner < 0) {
    const UnitSet slice = units(0, caches);
    return flag(index, place.neighbours(), 1, {.space = Space::input, .units = slice, .per_target = caches},
                {.space = Space::output, .units = slice, .per_target = caches});
  }
  if (inner >= steps_between(place)) return flag(inner - steps_between(place), place.neighbours(), 4);

  const int first = place.local * caches;  // unit of the slice
  const auto to_all = [&](int cache) { return on(place.neighbours(), output(rank, unit(first + cache))); };
  const auto inputs = [&](int cache) { return on(place.neighbours(), input(rank, unit(first + cache))); };
  if (caches == 1) return final_move({to_all(0)}, {inputs(0)});
  if (inner < caches) {
    const int cache = (place.cache + inner) % caches;  // each begins with its own
    return move({scratch(rank, unit(cache))}, {inputs(cache)});
  }
  switch (const int round = inner - caches) {
    case 0:
    case 1:
      return flag(round, place.column(), 2, {.space = Space::scratch, .units = units(0, caches)});
    case 2:
      return final_move({to_all(place.cache), scratch(rank, unit(place.cache))},
                        {on(place.column(), scratch(rank, unit(place.cache)))});
    case 3:
    case 4:
      return flag(round - 3, place.column(), 3, {.space = Space::scratch, .units = unit(place.cache)});
    default: {
      const int other = (place.cache + round - 4) % caches;  // each begins with another one
      return move({to_all(other)}, {scratch(place.in(other), unit(other))});
    }
  }
}

Cost cost(const Problem& problem, int rank) {
  const EvenPlace place(problem, rank);
  const std::int64_t caches = place.caches;
  const std::int64_t others = place.width - 1;
  return {.steps = step_count(problem, rank),
          .messages = 0,
          .units = 2 * caches * others + 2 * (caches - 1),
          .depth = place.flags_around() + (caches > 1 ? 2 * caches + 2 : 1)};
}

}  // namespace

extern const Algorithm k_all_reduce_nested_two_shot;
const Algorithm k_all_reduce_nested_two_shot{
    .collective = Collective::all_reduce,
    .name = "nested_two_shot",
    .summary = "slices added up in each cache, then over caches, and stored to all outputs of each cache",
    .source = nested::kSource,
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .synchronises = true,
    .is_by_caches = true,
};

}  // namespace tutti
