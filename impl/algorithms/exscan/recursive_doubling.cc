// SPDX-License-Identifier: Apache-2.0
// Recursive doubling exscan. Each rank gives its input to the next one. All but rank 0 then scan what they got by the
// rounds of doubling.h, in their outputs.
//
// P = 4: rank 0                    rank 1                               rank 3
//        step 0  CH(1) <- IN[0]    step 0  CH(2) <- IN[0], in turn      step 0  OUT[0] <- CH(2)
//                                  step 1  OUT[0] <- CH(0)              step 1  OUT[0] <- CH(2) op OUT[0]
//                                  step 2  CH(2) <- OUT[0]              step 2  OUT[0] <- CH(1) op OUT[0]
//                                  step 3  CH(3) <- OUT[0]
#include "impl/algorithms/algorithm.h"
#include "impl/algorithms/doubling.h"

namespace tutti {
namespace {

Shape shape(const Problem& problem) { return {.units_per_block = 1, .largest_message = problem.ranks > 1 ? 1 : 0}; }

/// All ranks but rank 0 are members.
doubling::Member member_of(const Problem& problem, int rank) { return {problem.ranks - 1, rank - 1}; }

bool passes_on(const Problem& problem, int rank) { return rank + 1 < problem.ranks; }

int step_count(const Problem& problem, int rank) {
  const int given = passes_on(problem, rank) ? 1 : 0;
  return rank == 0 ? given : given + 1 + member_of(problem, rank).exchanges();
}

Step step(const Problem& problem, int rank, int index) {
  const Operand in = input(rank, unit(0)), out = output(rank, unit(0));
  const bool passes = passes_on(problem, rank);
  if (passes && index == 0) {
    const Step send = move({channel(rank + 1)}, {in});
    return rank > 0 ? in_turn(send) : send;
  }
  if (passes) --index;
  if (index == 0) return move({out}, {channel(rank - 1)});
  const doubling::Exchange exchange = member_of(problem, rank).at(index - 1);
  if (!exchange.is_send) return move({out}, {channel(rank - exchange.distance), out});
  const Step send = move({channel(rank + exchange.distance)}, {out});
  return exchange.takes_turns ? in_turn(send) : send;
}

Cost cost(const Problem& problem, int rank) {
  const int given = passes_on(problem, rank) ? 1 : 0;
  const int sends = rank == 0 ? given : given + member_of(problem, rank).sends();
  return {.steps = step_count(problem, rank),
          .messages = sends,
          .units = sends,
          .depth = problem.ranks > 1 ? 3 + doubling::depth(problem.ranks - 1) : 0};
}

}  // namespace

extern const Algorithm k_exscan_recursive_doubling;
const Algorithm k_exscan_recursive_doubling{
    .collective = Collective::exscan,
    .name = "recursive_doubling",
    .summary = "inputs to the next rank, then prefixes at distances 1, 2, 4, ...; 1 + ceil(log2(P-1)) rounds, in order",
    .source = "Traeff 2025, doi:10.34726/10821: the inclusive scan after a shift",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .least_slots = one_slot,
};

}  // namespace tutti
