// SPDX-License-Identifier: Apache-2.0
// Two-level all_reduce on M hosts of L ranks. Rank (h, l) has slice l of the buffer, M of its L M units. Around the
// ring of hosts goes what each host adds up of that slice, and then the sum, which goes to all outputs of the host. A
// host's part is added in the MOVE that passes the message on.
//
// P = 4, L = 2, M = 2, rank 0 (units 0 and 1; next and previous: rank 2; host {0,1}):
//   step 0  SIGNAL {0,1} phase 1, read IN[0,2), write OUT[0,2) (rank t: 2 t further)
//   step 1  WAIT {0,1} phase 1
//   step 2  CH(2) <- IN[0]@0 op IN[0]@1
//   step 3  OUT[1]@{0..1}, CH(2) <- CH(2) op IN[1]@0 op IN[1]@1 (final)
//   step 4  OUT[0]@{0..1} <- CH(2)
//   step 5  SIGNAL {0,1} phase 2
//   step 6  WAIT {0,1} phase 2
#include "impl/algorithms/two_level.h"

namespace tutti {
namespace {

using two_level::Place;

Shape shape(const Problem& problem) {
  const Place place(problem, 0);
  return {.units_per_block = problem.ranks,
          .largest_message = place.hosts > 1 ? 1 : 0,
          .exposes_input = place.shares(),
          .exposes_output = place.shares()};
}

int step_count(const Problem& problem, int rank) {
  const Place place(problem, rank);
  return 2 * two_level::flags_around(place) + 2 * place.hosts - 1;
}

Step step(const Problem& problem, int rank, int index) {
  const Place place(problem, rank);
  const int hosts = place.hosts;
  const int before = two_level::flags_around(place);
  const int round = index - before;  // 2M - 1 of them
  if (round < 0) {
    const UnitSet slice = units(0, hosts);
    return two_level::flag(place, index, 1, {.space = Space::input, .units = slice, .per_target = hosts},
                           {.space = Space::output, .units = slice, .per_target = hosts});
  }
  if (round >= 2 * hosts - 1) return two_level::flag(place, round - (2 * hosts - 1), 2);

  const UnitSet here = unit(place.local * hosts + (place.host + 2 * hosts - round) % hosts);
  const Operand mine = on(place.neighbours(), input(rank, here));
  const Operand theirs = on(place.neighbours(), output(rank, here));
  if (hosts == 1) return final_move({theirs}, {mine});
  const Operand next = channel(place.next());
  const Operand previous = channel(place.previous());
  if (round == 0) return move({next}, {mine});
  if (round < hosts - 1) return move({next}, {previous, mine});
  if (round == hosts - 1) return final_move({theirs, next}, {previous, mine});
  if (round < 2 * hosts - 2) return move({theirs, next}, {previous});
  return move({theirs}, {previous});
}

Cost cost(const Problem& problem, int rank) {
  const Place place(problem, rank);
  const int hosts = place.hosts;
  return {.steps = step_count(problem, rank),
          .messages = 2 * (hosts - 1),
          .units = 2 * (problem.ranks - 1),
          .depth = 4 * hosts - 3 + two_level::flags_around(place)};
}

/// As of the ring: a fused MOVE needs a free slot before it releases one.
int least_slots(const Problem& problem, int slices) { return Place(problem, 0).hosts > 1 ? slices + 1 : 0; }

}  // namespace

extern const Algorithm k_all_reduce_two_level;
const Algorithm k_all_reduce_two_level{
    .collective = Collective::all_reduce,
    .name = "two_level",
    .summary = "a slice to each rank of a host: reads of the host's inputs, a ring over hosts, stores to its outputs",
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
