// SPDX-License-Identifier: Apache-2.0
// Circulant halving all_reduce, for any P in 2 ceil(log2 P) rounds. Skips s0 = P > s1 = ceil(s0/2) > ... > 1. Before
// the round from s to t = ceil(s/2), rank r holds partial results of the units [r, r+s); it sends those of [r+t, r+s)
// to rank r+t and adds what it receives from rank r-t to [r, r+s-t). At the end unit r is complete; the rounds run
// backwards to show it to everyone. Partial results live in the output; where P is odd, the one unit that the first
// round neither sends nor receives is copied there.
//
// P = 5, rank 0 (skips 5, 3, 2, 1):
//   step 0  CH(3) <- IN[3,5)               step 7   CH(4) <- OUT[0]
//   step 1  OUT[2] <- IN[2]                step 8   OUT[1] <- CH(1)
//   step 2  OUT[0,2) <- CH(2) op IN[0,2)   step 9   CH(3) <- OUT[0]
//   step 3  CH(2) <- OUT[2]                step 10  OUT[2] <- CH(2)
//   step 4  OUT[0] <- CH(3) op OUT[0]      step 11  CH(2) <- OUT[0,2)
//   step 5  CH(1) <- OUT[1]                step 12  OUT[3,5) <- CH(3)
//   step 6  OUT[0] <- CH(4) op OUT[0]      (unit 0 is complete: final)
//
// Source: Traeff, Optimal, non-pipelined reduce-scatter and allreduce algorithms, arXiv:2410.14234.
#include "impl/algorithms/algorithm.h"

namespace tutti {
namespace {

int rounds(int ranks) {
  int count = 0;
  for (int skip = ranks; skip > 1; skip = (skip + 1) / 2) ++count;
  return count;
}

/// The skip before round `round`: P halved, rounding up, so many times.
int skip_before(int ranks, int round) {
  for (int i = 0; i < round; ++i) ranks = (ranks + 1) / 2;
  return ranks;
}

bool copies_middle(int ranks) { return ranks > 1 && ranks % 2 == 1; }

Shape shape(const Problem& problem) { return {.units_per_block = problem.ranks, .largest_message = problem.ranks / 2}; }

int step_count(const Problem& problem, int /*rank*/) {
  return problem.ranks == 1 ? 1 : 4 * rounds(problem.ranks) + (copies_middle(problem.ranks) ? 1 : 0);
}

Step reduce_scatter_step(int ranks, int rank, int round, bool is_send) {
  const int wide = skip_before(ranks, round);
  const int narrow = (wide + 1) / 2;
  const bool is_first = round == 0;
  if (is_send) {
    const UnitSet sent = units((rank + narrow) % ranks, wide - narrow);
    return move({channel((rank + narrow) % ranks)}, {is_first ? input(rank, sent) : output(rank, sent)});
  }
  const UnitSet kept = units(rank, wide - narrow);
  Step step = move({output(rank, kept)},
                   {channel((rank + ranks - narrow) % ranks), is_first ? input(rank, kept) : output(rank, kept)});
  step.is_final = narrow == 1;
  return step;
}

Step all_gather_step(int ranks, int rank, int round, bool is_send) {
  const int wide = skip_before(ranks, round);
  const int narrow = (wide + 1) / 2;
  if (is_send) return move({channel((rank + ranks - narrow) % ranks)}, {output(rank, units(rank, wide - narrow))});
  const int from = (rank + narrow) % ranks;
  return move({output(rank, units(from, wide - narrow))}, {channel(from)});
}

Step step(const Problem& problem, int rank, int index) {
  const int ranks = problem.ranks;
  if (ranks == 1) return final_move({output(rank, unit(0))}, {input(rank, unit(0))});
  if (copies_middle(ranks)) {
    const UnitSet middle = unit((rank + ranks / 2) % ranks);
    if (index == 1) return move({output(rank, middle)}, {input(rank, middle)});
    if (index > 1) --index;
  }
  const int count = rounds(ranks);
  const bool is_send = index % 2 == 0;
  const int round = index / 2;
  if (round < count) return reduce_scatter_step(ranks, rank, round, is_send);
  return all_gather_step(ranks, rank, 2 * count - 1 - round, is_send);
}

Cost cost(const Problem& problem, int rank) {
  const int count = rounds(problem.ranks);
  return {.steps = step_count(problem, rank),
          .messages = 2 * count,
          .units = 2 * (problem.ranks - 1),
          .depth = problem.ranks == 1 ? 1 : 6 * count};
}

}  // namespace

extern const Algorithm k_all_reduce_halving;
const Algorithm k_all_reduce_halving{
    .collective = Collective::all_reduce,
    .name = "halving",
    .summary = "circulant halving, then doubling; 2 ceil(log2 P) rounds for every P, least bytes",
    .source = "Traeff 2024, arXiv:2410.14234",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .least_slots = slots_of_whole_message,
    .synchronises = true,
};

}  // namespace tutti
