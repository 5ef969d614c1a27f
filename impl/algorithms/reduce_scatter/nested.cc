// SPDX-License-Identifier: Apache-2.0
// Nested reduce_scatter on M caches of L ranks: rank (c, l) adds up the blocks of the ranks (*, l) over its cache, and
// then its own block over these ranks. One sum of each cache crosses for each block.
//
// P = 4, L = 2, M = 2, rank 0
//   step 0  SIGNAL {0,1} phase 1, read IN[0] (rank t: IN[t] and IN[t + 2])
//   step 1  WAIT {0,1} phase 1
//   step 2  SCR[0,2) <- IN[0]+[2]@0 op IN[0]+[2]@1
//   step 3  SIGNAL {0,2} phase 2, read SCR[0,2)
//   step 4  WAIT {0,2} phase 2
//   step 5  OUT[0] <- SCR[0]@0 op SCR[0]@2 (final)
//   step 6  SIGNAL {0,1} phase 3
//   step 7  WAIT {0,1} phase 3
#include "impl/algorithms/nested.h"

namespace tutti {
namespace {

using nested::EvenPlace;
using nested::flag;

Shape shape(const Problem& problem) {
  const EvenPlace place(problem, 0);
  return {.units_per_block = 1, .scratch_units = place.caches > 1 ? place.caches : 0, .exposes_input = place.width > 1};
}

int steps_between(const EvenPlace& place) { return place.caches > 1 ? 4 : 1; }

int step_count(const Problem& problem, int rank) {
  const EvenPlace place(problem, rank);
  return 2 * place.flags_around() + steps_between(place);
}

Step step(const Problem& problem, int rank, int index) {
  const EvenPlace place(problem, rank);
  const RankSet here = place.neighbours();
  const int inner = index - place.flags_around();
  if (inner < 0) {
    const Exposure read{.space = Space::input, .units = place.blocks(), .per_target = 1};
    return flag(index, here, 1, read);
  }
  if (inner >= steps_between(place)) return closing_reads(flag(inner - steps_between(place), here, 3));
  const Operand mine = output(rank, unit(0));
  const Operand inputs =
      on(here, input(rank, {.start = rank, .length = 1, .stride = place.width, .repeat = place.caches}));
  if (place.caches == 1) return final_move({mine}, {inputs});
  const UnitSet sums = units(0, place.caches);
  switch (inner) {
    case 0:
      return move({scratch(rank, units(place.cache, place.caches))}, {inputs});  // from its own block on
    case 1:
      return signal(place.column(), 2, {.space = Space::scratch, .units = sums});
    case 2:
      return wait(place.column(), 2);
    default:
      return final_move({mine}, {on(place.column(), scratch(rank, unit(place.cache)))});
  }
}

Cost cost(const Problem& problem, int rank) {
  const EvenPlace place(problem, rank);
  const std::int64_t caches = place.caches;
  return {.steps = step_count(problem, rank),
          .messages = 0,
          .units = caches * (place.width - 1) + caches - 1,
          .depth = place.flags_around() + (caches > 1 ? 3 : 1)};
}

}  // namespace

extern const Algorithm k_reduce_scatter_nested;
const Algorithm k_reduce_scatter_nested{
    .collective = Collective::reduce_scatter,
    .name = "nested",
    .summary = "each block is added up in each cache, and these sums by its owner",
    .source = nested::kSource,
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .synchronises = true,
    .is_by_caches = true,
};

}  // namespace tutti
