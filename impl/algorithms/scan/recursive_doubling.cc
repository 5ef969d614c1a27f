// SPDX-License-Identifier: Apache-2.0
// Recursive doubling scan: the rounds of doubling.h, with the prefix that a rank has so far in its output.
//
// P = 4: rank 0                            rank 1                                   rank 3
//        step 0  OUT[0], CH(1) <- IN[0]    step 0  CH(2) <- IN[0], in turn          step 0  OUT[0] <- CH(2) op IN[0]
//        step 1  CH(2) <- OUT[0]           step 1  OUT[0] <- CH(0) op IN[0]         step 1  OUT[0] <- CH(1) op OUT[0]
//                                          step 2  CH(3) <- OUT[0]
#include "impl/algorithms/algorithm.h"
#include "impl/algorithms/doubling.h"

namespace tutti {
namespace {

Shape shape(const Problem& problem) { return {.units_per_block = 1, .largest_message = problem.ranks > 1 ? 1 : 0}; }

int step_count(const Problem& problem, int rank) {
  return problem.ranks > 1 ? doubling::Member(problem.ranks, rank).exchanges() : 1;
}

Step step(const Problem& problem, int rank, int index) {
  const Operand in = input(rank, unit(0)), out = output(rank, unit(0));
  if (problem.ranks == 1) return move({out}, {in});
  if (rank == 0 && index == 0) return move({out, channel(1)}, {in});
  const doubling::Exchange exchange = doubling::Member(problem.ranks, rank).at(index);
  const Operand mine = exchange.distance == 1 ? in : out;
  if (!exchange.is_send) return move({out}, {channel(rank - exchange.distance), mine});
  const Step send = move({channel(rank + exchange.distance)}, {mine});
  return exchange.takes_turns ? in_turn(send) : send;
}

Cost cost(const Problem& problem, int rank) {
  if (problem.ranks == 1) return {.steps = 1, .messages = 0, .units = 0, .depth = 1};
  const int sends = doubling::Member(problem.ranks, rank).sends();
  return {
      .steps = step_count(problem, rank), .messages = sends, .units = sends, .depth = doubling::depth(problem.ranks)};
}

}  // namespace

extern const Algorithm k_scan_recursive_doubling;
const Algorithm k_scan_recursive_doubling{
    .collective = Collective::scan,
    .name = "recursive_doubling",
    .summary = "prefixes passed on at distances 1, 2, 4, ...; ceil(log2 P) rounds, in the order of ranks",
    .source = "Hillis & Steele 1986, doi:10.1145/7902.7903",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .least_slots = one_slot,
};

}  // namespace tutti
