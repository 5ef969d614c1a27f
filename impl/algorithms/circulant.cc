// SPDX-License-Identifier: Apache-2.0
#include "impl/algorithms/circulant.h"

namespace tutti::circulant {
namespace {

/// Rank `rank + distance`, for a distance in (-P, P).
int rank_at(const Problem& problem, int rank, int distance) {
  return (rank + distance + problem.ranks) % problem.ranks;
}

Step with_turn(const Step& step, const Exchange& exchange) { return exchange.takes_turns ? in_turn(step) : step; }

/// The unit, counted from the rank's own, that the first round neither sends nor receives: with radix 2 and P odd the
/// last one that is kept. 0: none.
int idle_unit(const Rounds& rounds) {
  const int kept = rounds.first_narrow();
  return rounds.largest_message() < kept && kept > 1 ? kept - 1 : 0;
}

/// Shows what unit `rank` of the output holds to everyone. `mine` is where it lies before the first round.
Step show(const Problem& problem, const Exchange& exchange, int rank, const Operand& mine) {
  const int distance = exchange.peer * exchange.round.narrow;
  const int length = exchange.round.length(exchange.peer);
  if (exchange.is_send) {
    const Operand shown = exchange.is_last_round ? mine : output(rank, units(rank, length));
    return with_turn(move({channel(rank_at(problem, rank, -distance))}, {shown}), exchange);
  }
  const int from = rank_at(problem, rank, distance);
  return with_turn(move({output(rank, units(from, length))}, {channel(from)}), exchange);
}

}  // namespace

// ---- all_reduce: partial results live in the output

Shape all_reduce_shape(const Problem& problem, int radix) {
  return {.units_per_block = problem.ranks, .largest_message = Rounds(problem.ranks, radix).largest_message()};
}

int all_reduce_step_count(const Problem& problem, int radix) {
  const Rounds rounds(problem.ranks, radix);
  return problem.ranks == 1 ? 1 : 4 * rounds.messages() + (idle_unit(rounds) > 0 ? 1 : 0);
}

Step all_reduce_step(const Problem& problem, int radix, int rank, int index) {
  if (problem.ranks == 1) return final_move({output(rank, unit(0))}, {input(rank, unit(0))});
  const Rounds rounds(problem.ranks, radix);
  if (const int idle = idle_unit(rounds); idle > 0 && index-- == 0) {
    const UnitSet set = unit(rank_at(problem, rank, idle));
    return move({output(rank, set)}, {input(rank, set)});
  }
  const int down = 2 * rounds.messages();
  if (index >= down) return show(problem, rounds.up(index - down), rank, output(rank, unit(rank)));

  const Exchange exchange = rounds.down(index);
  const int distance = exchange.peer * exchange.round.narrow;
  const int length = exchange.round.length(exchange.peer);
  if (exchange.is_send) {
    const int to = rank_at(problem, rank, distance);
    const UnitSet sent = units(to, length);
    return with_turn(move({channel(to)}, {exchange.is_first_round ? input(rank, sent) : output(rank, sent)}), exchange);
  }
  const UnitSet kept = units(rank, length);
  const bool is_first = exchange.is_first_round && exchange.peer == 1;
  Step add = move({output(rank, kept)},
                  {channel(rank_at(problem, rank, -distance)), is_first ? input(rank, kept) : output(rank, kept)});
  add.is_final = exchange.is_last_round && !exchange.takes_turns;
  return with_turn(add, exchange);
}

Cost all_reduce_cost(const Problem& problem, int radix) {
  const Rounds rounds(problem.ranks, radix);
  const int idle = idle_unit(rounds) > 0 ? 1 : 0;
  return {.steps = all_reduce_step_count(problem, radix),
          .messages = 2 * rounds.messages(),
          .units = 2 * (problem.ranks - 1),
          .depth = problem.ranks == 1 ? 1 : 2 * rounds.depth() + idle};
}

// ---- all_gather

Shape all_gather_shape(const Problem& problem, int radix) {
  return {.units_per_block = 1, .largest_message = Rounds(problem.ranks, radix).largest_message()};
}

int all_gather_step_count(const Problem& problem, int radix) { return 1 + 2 * Rounds(problem.ranks, radix).messages(); }

Step all_gather_step(const Problem& problem, int radix, int rank, int index) {
  const Operand mine = input(rank, unit(0));
  if (index == 0) return move({output(rank, unit(rank))}, {mine});
  return show(problem, Rounds(problem.ranks, radix).up(index - 1), rank, mine);
}

Cost all_gather_cost(const Problem& problem, int radix) {
  const Rounds rounds(problem.ranks, radix);
  return {.steps = all_gather_step_count(problem, radix),
          .messages = rounds.messages(),
          .units = problem.ranks - 1,
          .depth = 1 + rounds.depth()};
}

// ---- reduce_scatter: partial results live in scratch, that of block rank + i in unit i

Shape reduce_scatter_shape(const Problem& problem, int radix) {
  const Rounds rounds(problem.ranks, radix);
  return {.units_per_block = 1,
          .scratch_units = rounds.first_narrow() > 1 ? rounds.first_narrow() : 0,
          .largest_message = rounds.largest_message()};
}

int reduce_scatter_step_count(const Problem& problem, int radix) {
  const Rounds rounds(problem.ranks, radix);
  return problem.ranks == 1 ? 1 : 2 * rounds.messages() + (idle_unit(rounds) > 0 ? 1 : 0);
}

Step reduce_scatter_step(const Problem& problem, int radix, int rank, int index) {
  const Operand result = output(rank, unit(0));
  if (problem.ranks == 1) return final_move({result}, {input(rank, unit(0))});
  const Rounds rounds(problem.ranks, radix);
  if (const int idle = idle_unit(rounds); idle > 0 && index-- == 0) {
    return move({scratch(rank, unit(idle))}, {input(rank, unit(rank_at(problem, rank, idle)))});
  }
  const Exchange exchange = rounds.down(index);
  const int distance = exchange.peer * exchange.round.narrow;
  const int length = exchange.round.length(exchange.peer);
  if (exchange.is_send) {
    const int to = rank_at(problem, rank, distance);
    const Operand sent =
        exchange.is_first_round ? input(rank, units(to, length)) : scratch(rank, units(distance, length));
    return with_turn(move({channel(to)}, {sent}), exchange);
  }
  const Operand partial = scratch(rank, units(0, length));
  Operand sum = exchange.is_last_round && exchange.peer > 1 ? result : partial;
  if (exchange.is_first_round && exchange.peer == 1) sum = input(rank, units(rank, length));
  Step add = move({exchange.is_last_round ? result : partial}, {channel(rank_at(problem, rank, -distance)), sum});
  add.is_final = exchange.is_last_round && !exchange.takes_turns;
  return with_turn(add, exchange);
}

Cost reduce_scatter_cost(const Problem& problem, int radix) {
  const Rounds rounds(problem.ranks, radix);
  const int idle = idle_unit(rounds) > 0 ? 1 : 0;
  return {.steps = reduce_scatter_step_count(problem, radix),
          .messages = rounds.messages(),
          .units = problem.ranks - 1,
          .depth = problem.ranks == 1 ? 1 : rounds.depth() + idle};
}

}  // namespace tutti::circulant
