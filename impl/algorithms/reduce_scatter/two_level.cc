// SPDX-License-Identifier: Apache-2.0
// Two-level reduce_scatter on M hosts of L ranks. The block of rank (h, l) starts at rank (h + 1, l) and travels once
// around the ring of hosts. Each host's part of it is added up in the MOVE that passes it on; rank (h, l) is the last.
//
// P = 4, L = 2, M = 2, rank 0 (next and previous: rank 2; host {0,1}):
//   step 0  SIGNAL {0,1} phase 1, read IN[0] (rank t: IN[t] and IN[t + 2])
//   step 1  WAIT {0,1} phase 1
//   step 2  CH(2) <- IN[2]@0 op IN[2]@1
//   step 3  OUT[0] <- CH(2) op IN[0]@0 op IN[0]@1 (final)
//   step 4  SIGNAL {0,1} phase 2
//   step 5  WAIT {0,1} phase 2
#include "impl/algorithms/two_level.h"

namespace tutti {
namespace {

using two_level::Place;

Shape shape(const Problem& problem) {
  const Place place(problem, 0);
  return {.units_per_block = 1, .largest_message = place.hosts > 1 ? 1 : 0, .exposes_input = place.shares()};
}

int step_count(const Problem& problem, int rank) {
  const Place place(problem, rank);
  return 2 * two_level::flags_around(place) + place.hosts;
}

Step step(const Problem& problem, int rank, int index) {
  const Place place(problem, rank);
  const int hosts = place.hosts;
  const int round = index - two_level::flags_around(place);
  if (round < 0) {
    return two_level::flag(place, index, 1, {.space = Space::input, .units = place.column(), .per_target = 1});
  }
  if (round >= hosts) return closing_reads(two_level::flag(place, round - hosts, 2));

  const int host = (place.host + 2 * hosts - 1 - round) % hosts;
  const Operand here = on(place.neighbours(), input(rank, unit(place.rank_on(host))));
  const Operand mine = output(rank, unit(0));
  if (hosts == 1) return final_move({mine}, {here});
  const Operand next = channel(place.next());
  const Operand previous = channel(place.previous());
  if (round == 0) return move({next}, {here});
  if (round < hosts - 1) return move({next}, {previous, here});
  return final_move({mine}, {previous, here});
}

Cost cost(const Problem& problem, int rank) {
  const Place place(problem, rank);
  const int hosts = place.hosts;
  return {.steps = step_count(problem, rank),
          .messages = hosts - 1,
          .units = hosts - 1 + std::int64_t{hosts} * (place.per_host - 1),
          .depth = 2 * hosts - 1 + two_level::flags_around(place)};
}

/// From three hosts on there are MOVEs that need a free slot before they release one.
int least_slots(const Problem& problem, int slices) {
  const int hosts = Place(problem, 0).hosts;
  return hosts > 2 ? slices + 1 : hosts > 1 ? slots_of_whole_message(problem, slices) : 0;
}

}  // namespace

extern const Algorithm k_reduce_scatter_two_level;
const Algorithm k_reduce_scatter_two_level{
    .collective = Collective::reduce_scatter,
    .name = "two_level",
    .summary = "each block around a ring over hosts, to which each host adds up its inputs",
    .source = two_level::kSource,
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .least_slots = least_slots,
    .synchronises = true,
    .is_by_hosts = true,
};

}  // namespace tutti
