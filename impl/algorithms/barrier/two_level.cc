// SPDX-License-Identifier: Apache-2.0
// Two-level barrier on M hosts of L ranks: the first rank of each host hears of all ranks of its host, these first
// ranks are in a dissemination barrier, and each then tells its host.
//
// P = 4, L = 2, M = 2
//   rank 0                                rank 1
//   step 0  WAIT {1} phase 1              step 0  SIGNAL {0} phase 1
//   step 1  SIGNAL {2} phase 2            step 1  WAIT {0} phase 3
//   step 2  WAIT {2} phase 2
//   step 3  SIGNAL {1} phase 3
//
// Source: Hensgen, Finkel & Manber, Two algorithms for barrier synchronization, 1988, over hosts.
#include "impl/algorithms/two_level.h"

#include <bit>

namespace tutti {
namespace {

using two_level::Place;

int rounds(int hosts) { return std::bit_width(static_cast<unsigned>(hosts - 1)); }

Shape shape(const Problem& /*problem*/) { return {}; }

int step_count(const Problem& problem, int rank) {
  const Place place(problem, rank);
  if (place.local > 0) return 2;
  return 2 * rounds(place.hosts) + two_level::flags_around(place);
}

Step step(const Problem& problem, int rank, int index) {
  const Place place(problem, rank);
  const int last_phase = rounds(place.hosts) + 2;
  const int leader = rank - place.local;
  if (place.local > 0) return index == 0 ? signal(only(leader), 1) : wait(only(leader), last_phase);
  const RankSet others_here{.first = (rank + 1) % problem.ranks, .stride = 1, .n = place.per_host - 1};
  const int flag = index - (place.shares() ? 1 : 0);
  if (flag < 0) return wait(others_here, 1);
  if (flag == 2 * rounds(place.hosts)) return signal(others_here, last_phase);
  const int round = flag / 2;
  const int distance = 1 << round;
  if (flag % 2 == 0) return signal(only(place.rank_on((place.host + distance) % place.hosts)), round + 2);
  return wait(only(place.rank_on((place.host + place.hosts - distance) % place.hosts)), round + 2);
}

Cost cost(const Problem& problem, int rank) {
  const Place place(problem, rank);
  return {.steps = step_count(problem, rank),
          .messages = 0,
          .units = 0,
          .depth = rounds(place.hosts) + two_level::flags_around(place)};
}

}  // namespace

extern const Algorithm k_barrier_two_level;
const Algorithm k_barrier_two_level{
    .collective = Collective::barrier,
    .name = "two_level",
    .summary = "one rank of each host hears of its host, tells those of the others, and then its host",
    .source = "Hensgen, Finkel & Manber 1988, doi:10.1007/BF01379320, over hosts",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .synchronises = true,
    .is_by_hosts = true,
};

}  // namespace tutti
