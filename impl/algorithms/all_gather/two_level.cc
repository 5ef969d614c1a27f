// SPDX-License-Identifier: Apache-2.0
// Two-level all_gather on M hosts of L ranks. Rank (h, l) passes the blocks of the ranks (*, l) around the ring of
// hosts, and stores each to all outputs of its host. A send and a receive take turns, so that one slot is enough.
//
// P = 4, L = 2, M = 2, rank 0 (next and previous: rank 2; host {0,1}):
//   step 0  SIGNAL {0,1} phase 1, write OUT[0] (rank t: OUT[t] and OUT[t + 2])
//   step 1  WAIT {0,1} phase 1
//   step 2  OUT[0]@{0..1} <- IN[0]
//   step 3  CH(2) <- IN[0], in turn
//   step 4  OUT[2]@{0..1} <- CH(2)
//   step 5  SIGNAL {0,1} phase 2
//   step 6  WAIT {0,1} phase 2
#include "impl/algorithms/two_level.h"

namespace tutti {
namespace {

using two_level::Place;

Shape shape(const Problem& problem) {
  const Place place(problem, 0);
  return {.units_per_block = 1, .largest_message = place.hosts > 1 ? 1 : 0, .exposes_output = place.shares()};
}

int step_count(const Problem& problem, int rank) {
  const Place place(problem, rank);
  return 2 * two_level::flags_around(place) + 2 * place.hosts - 1;
}

Step step(const Problem& problem, int rank, int index) {
  const Place place(problem, rank);
  const int hosts = place.hosts;
  const int move_index = index - two_level::flags_around(place);  // of 2M - 1 MOVEs
  if (move_index < 0) {
    return two_level::flag(place, index, 1, {}, {.space = Space::output, .units = place.column(), .per_target = 1});
  }
  if (move_index >= 2 * hosts - 1) return two_level::flag(place, move_index - (2 * hosts - 1), 2);

  const Operand mine = input(rank, unit(0));
  const auto store = [&](int host) { return on(place.neighbours(), output(rank, unit(place.rank_on(host)))); };
  if (move_index == 0) return move({store(place.host)}, {mine});
  const int round = (move_index - 1) / 2;
  const int held = (place.host + hosts - round) % hosts;
  if (move_index % 2 == 1) {
    return in_turn(move({channel(place.next())}, {round == 0 ? mine : output(rank, unit(place.rank_on(held)))}));
  }
  return move({store((held + hosts - 1) % hosts)}, {channel(place.previous())});
}

Cost cost(const Problem& problem, int rank) {
  const Place place(problem, rank);
  const int hosts = place.hosts;
  return {.steps = step_count(problem, rank),
          .messages = hosts - 1,
          .units = hosts - 1 + std::int64_t{hosts} * (place.per_host - 1),
          .depth = 3 * hosts - 2 + two_level::flags_around(place)};
}

int least_slots(const Problem& problem, int /*slices*/) { return Place(problem, 0).hosts > 1 ? 1 : 0; }

}  // namespace

extern const Algorithm k_all_gather_two_level;
const Algorithm k_all_gather_two_level{
    .collective = Collective::all_gather,
    .name = "two_level",
    .summary = "a block from each rank: around a ring over hosts, stored to all outputs of each host",
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
