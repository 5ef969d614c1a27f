// SPDX-License-Identifier: Apache-2.0
// Nested barrier: the first rank of each cache hears of its cache, the first ranks hear of each other, all at once, and
// each then tells its cache. One line per cache crosses to each other cache, in one round.
//
// P = 4, L = 2
//   rank 0                                rank 1
//   step 0  WAIT {1} phase 1              step 0  SIGNAL {0} phase 1
//   step 1  SIGNAL {0,2} phase 2          step 1  WAIT {0} phase 3
//   step 2  WAIT {0,2} phase 2
//   step 3  SIGNAL {1} phase 3
#include "impl/algorithms/nested.h"

namespace tutti {
namespace {

using nested::Place;

Shape shape(const Problem& /*problem*/) { return {}; }

int step_count(const Problem& problem, int rank) {
  const Place place(problem, rank);
  if (rank != place.first) return 2;
  return (place.size > 1 ? 2 : 0) + (place.caches > 1 ? 2 : 0);
}

Step step(const Problem& problem, int rank, int index) {
  const Place place(problem, rank);
  if (rank != place.first) return index == 0 ? signal(only(place.first), 1) : wait(only(place.first), 3);
  const RankSet members = place.after(rank);
  const int flag = index - (place.size > 1 ? 1 : 0);
  if (flag < 0) return wait(members, 1);
  if (place.caches == 1 || flag == 2) return signal(members, 3);
  return flag == 0 ? signal(place.firsts(), 2) : wait(place.firsts(), 2);
}

Cost cost(const Problem& problem, int rank) {
  const Place place(problem, rank);
  return {.steps = step_count(problem, rank),
          .messages = 0,
          .units = 0,
          .depth = (place.width > 1 ? 2 : 0) + (place.caches > 1 ? 1 : 0)};
}

}  // namespace

extern const Algorithm k_barrier_nested;
const Algorithm k_barrier_nested{
    .collective = Collective::barrier,
    .name = "nested",
    .summary = "one rank of each cache hears of its cache, then of the others, and tells its cache; three rounds",
    .source = nested::kSource,
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .synchronises = true,
    .is_by_caches = true,
};

}  // namespace tutti
