// SPDX-License-Identifier: Apache-2.0
// Recursive doubling all_reduce. In round i each of the 2^k members exchanges its whole sum with the member that
// differs in bit i of its number. Both add the sums in the order of ranks. Sending and receiving take turns: slice j of
// the old sum leaves before slice j of the new one takes its place. Where P is no power of two, the first ranks form
// pairs that are one member each. The even rank gives its input to the odd one at the beginning and gets the result at
// the end.
//
// P = 5: rank 0                     rank 1                                  rank 2
//        step 0  CH(1) <- IN[0]     step 0  OUT[0] <- CH(0) op IN[0]        step 0  CH(1) <- IN[0], in turn
//        step 1  OUT[0] <- CH(1)    step 1  CH(2) <- OUT[0], in turn        step 1  OUT[0] <- CH(1) op IN[0]
//                                   step 2  OUT[0] <- OUT[0] op CH(2)       step 2  CH(4) <- OUT[0], in turn
//                                   step 3  CH(3) <- OUT[0], in turn        step 3  OUT[0] <- OUT[0] op CH(4)
//                                   step 4  OUT[0] <- OUT[0] op CH(3)
//                                   step 5  CH(0) <- OUT[0]
#include <algorithm>
#include <bit>

#include "impl/algorithms/algorithm.h"

namespace tutti {
namespace {

/// What a rank is among the 2^rounds that exchange.
struct Role {
  int rounds;    ///< floor(log2 P)
  int extra;     ///< ranks beyond 2^rounds: as many pairs at the beginning are one member each
  int member;    ///< number among those that exchange; -1: the rank gives its input to the next one and waits
  bool is_pair;  ///< has the input of the rank before it to add
};

Role role_of(int ranks, int rank) {
  const int rounds = std::bit_width(static_cast<unsigned>(ranks)) - 1;
  const int extra = ranks - (1 << rounds);
  if (rank >= 2 * extra) return {.rounds = rounds, .extra = extra, .member = rank - extra, .is_pair = false};
  const bool gives = rank % 2 == 0;
  return {.rounds = rounds, .extra = extra, .member = gives ? -1 : rank / 2, .is_pair = true};
}

int rank_of(const Role& role, int member) { return member < role.extra ? 2 * member + 1 : member + role.extra; }

Shape shape(const Problem& problem) { return {.units_per_block = 1, .largest_message = problem.ranks > 1 ? 1 : 0}; }

int step_count(const Problem& problem, int rank) {
  if (problem.ranks == 1) return 1;
  const Role role = role_of(problem.ranks, rank);
  return role.member < 0 ? 2 : 2 * role.rounds + (role.is_pair ? 2 : 0);
}

Step step(const Problem& problem, int rank, int index) {
  const Operand in = input(rank, unit(0)), out = output(rank, unit(0));
  if (problem.ranks == 1) return final_move({out}, {in});
  const Role role = role_of(problem.ranks, rank);
  if (role.member < 0) return index == 0 ? move({channel(rank + 1)}, {in}) : move({out}, {channel(rank + 1)});
  if (role.is_pair && index == 0) return move({out}, {channel(rank - 1), in});
  if (role.is_pair) --index;
  const int round = index / 2;
  if (round == role.rounds) return move({channel(rank - 1)}, {out});

  const Operand mine = role.is_pair || round > 0 ? out : in;
  const int other = role.member ^ (1 << round);
  const Operand peer = channel(rank_of(role, other));
  if (index % 2 == 0) return in_turn(move({peer}, {mine}));
  Step add = other < role.member ? move({out}, {peer, mine}) : move({out}, {mine, peer});
  add.is_final = round + 1 == role.rounds;
  return add;
}

/// A rank meets another in every round: 3 where it waits for the transfer, 2 where it came later itself. Pairs begin 3
/// later than the others, so that the longest way leads from a pair to the pair that is met last, and to its other
/// rank.
int depth_of(const Role& role) {
  const int rounds = role.rounds;
  if (role.extra == 0) return 3 * rounds;
  const int farthest = std::bit_width(static_cast<unsigned>(role.extra - 1));  // bits in which two pairs may differ
  return std::max(3 * rounds + 3, 2 * rounds + 6 + farthest);
}

Cost cost(const Problem& problem, int rank) {
  if (problem.ranks == 1) return {.steps = 1, .messages = 0, .units = 0, .depth = 1};
  const Role role = role_of(problem.ranks, rank);
  const int sent = role.member < 0 ? 1 : role.rounds + (role.is_pair ? 1 : 0);
  return {.steps = step_count(problem, rank), .messages = sent, .units = sent, .depth = depth_of(role)};
}

}  // namespace

extern const Algorithm k_all_reduce_recursive_doubling;
const Algorithm k_all_reduce_recursive_doubling{
    .collective = Collective::all_reduce,
    .name = "recursive_doubling",
    .summary = "whole buffers exchanged at distances 1, 2, 4, ...; ceil(log2 P) rounds, in the order of ranks",
    .source = "recursive doubling with the ranks beyond a power of two folded in, as in MPICH and Open MPI",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .least_slots = one_slot,
    .synchronises = true,
};

}  // namespace tutti
