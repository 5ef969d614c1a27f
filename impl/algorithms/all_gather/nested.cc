// SPDX-License-Identifier: Apache-2.0
// Nested all_gather on M caches of L ranks: rank (c, l) reads the blocks of the ranks (*, l), and stores each to all
// outputs of its cache. Each block crosses to each other cache once.
//
// P = 4, L = 2, M = 2, rank 0
//   step 0  SIGNAL {0,1} phase 1, write OUT[0] (rank t: OUT[t] and OUT[t + 2])
//   step 1  WAIT {0,1} phase 1
//   step 2  SCR[0], OUT[0]@{0..1} <- IN[0]
//   step 3  SIGNAL {0,2} phase 2, read SCR[0]
//   step 4  WAIT {0,2} phase 2
//   step 5  OUT[2]@{0..1} <- SCR[0]@2
//   step 6  SIGNAL {0,1} phase 3
//   step 7  WAIT {0,1} phase 3
#include "impl/algorithms/nested.h"

namespace tutti {
namespace {

using nested::EvenPlace;
using nested::flag;

Shape shape(const Problem& problem) {
  const EvenPlace place(problem, 0);
  return {.units_per_block = 1, .scratch_units = place.caches > 1 ? 1 : 0, .exposes_output = place.width > 1};
}

int steps_between(const EvenPlace& place) { return place.caches > 1 ? 3 + place.caches - 1 : 1; }

int step_count(const Problem& problem, int rank) {
  const EvenPlace place(problem, rank);
  return 2 * place.flags_around() + steps_between(place);
}

Step step(const Problem& problem, int rank, int index) {
  const EvenPlace place(problem, rank);
  const RankSet here = place.neighbours();
  const int inner = index - place.flags_around();
  if (inner < 0) {
    const Exposure write{.space = Space::output, .units = place.blocks(), .per_target = 1};
    return flag(index, here, 1, {}, write);
  }
  if (inner >= steps_between(place)) return flag(inner - steps_between(place), here, 3);

  const UnitSet block = unit(0);
  const auto to_all = [&](int owner) { return on(here, output(rank, unit(owner))); };
  if (inner == 0 && place.caches == 1) return move({to_all(rank)}, {input(rank, block)});
  if (inner == 0) return move({scratch(rank, block), to_all(rank)}, {input(rank, block)});
  if (inner < 3) return flag(inner - 1, place.column(), 2, {.space = Space::scratch, .units = block});
  const int other = place.in((place.cache + inner - 2) % place.caches);  // each begins with another one
  return move({to_all(other)}, {scratch(other, block)});
}

Cost cost(const Problem& problem, int rank) {
  const EvenPlace place(problem, rank);
  const std::int64_t caches = place.caches;
  return {.steps = step_count(problem, rank),
          .messages = 0,
          .units = caches - 1 + caches * (place.width - 1),
          .depth = place.flags_around() + (caches > 1 ? 1 + 1 + caches - 1 : 1)};
}

}  // namespace

extern const Algorithm k_all_gather_nested;
const Algorithm k_all_gather_nested{
    .collective = Collective::all_gather,
    .name = "nested",
    .summary = "each block is read once by each cache, and stored to all outputs there",
    .source = nested::kSource,
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .synchronises = true,
    .is_by_caches = true,
};

}  // namespace tutti
