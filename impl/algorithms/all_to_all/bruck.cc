// SPDX-License-Identifier: Apache-2.0
// Bruck's all_to_all. A block that has to go i ranks further, i in [1, P), travels by the bits of i, from the lowest
// on. In the round of bit b every rank sends all its blocks with that bit to rank r+b. It gets as many for the same
// places from rank r-b. ceil(log2 P) rounds instead of P-1, every block moved up to as often: for small blocks. Blocks
// live in scratch by their i, so that the exchange is in place there and the input stays as it is. At the end they are
// put in the order of the ranks that they came from. Those with one bit set are runs of b units, the last of which P
// may cut short: that one is a message of its own.
//
// P = 5, rank 0 (unit i-1 of scratch holds the block that goes i ranks):
//   step 0  OUT[0] <- IN[0]                     step 5  SCR[1,3) <- CH(3)
//   step 1  SCR[0,4) <- IN[1,5)                 step 6  CH(4) <- SCR[3], in turn
//   step 2  CH(1) <- SCR[0]+[2], in turn        step 7  SCR[3] <- CH(1)
//   step 3  SCR[0]+[2] <- CH(4)                 step 8  OUT[4]+[3]+[2]+[1] <- SCR[0,4)
//   step 4  CH(2) <- SCR[1,3), in turn
//
// Source: Bruck, Ho, Kipnis, Upfal & Weathersby, Efficient algorithms for all-to-all communications in multiport
// message-passing systems, 1997.
#include <algorithm>
#include <bit>

#include "impl/algorithms/algorithm.h"

namespace tutti {
namespace {

/// The blocks that travel in a round, by how far they have to go in all: those in [1, P) with one bit set.
struct Travellers {
  int bit;
  int full;     ///< runs of `bit` blocks, 2 bit apart
  int partial;  ///< blocks of the run that P cuts short

  [[nodiscard]] int messages() const { return (full > 0 ? 1 : 0) + (partial > 0 ? 1 : 0); }
  /// Where message `number` lies in scratch: block i in unit i - 1.
  [[nodiscard]] UnitSet set(int number) const {
    if (number == 0 && full > 0) return {.start = bit - 1, .length = bit, .stride = 2 * bit, .repeat = full};
    return units(2 * bit * full + bit - 1, partial);
  }
};

int rounds_of(int ranks) { return std::bit_width(static_cast<unsigned>(ranks - 1)); }

Travellers travellers_of(int ranks, int round) {
  const int bit = 1 << round;
  const int full = ranks / (2 * bit);
  return {.bit = bit, .full = full, .partial = std::max(0, ranks - 2 * bit * full - bit)};
}

int messages_of(int ranks) {
  int messages = 0;
  for (int round = 0; round < rounds_of(ranks); ++round) messages += travellers_of(ranks, round).messages();
  return messages;
}

int most_travellers(int ranks) {
  int most = 0;
  for (int round = 0; round < rounds_of(ranks); ++round) {
    const Travellers blocks = travellers_of(ranks, round);
    most = std::max({most, blocks.bit * blocks.full, blocks.partial});
  }
  return most;
}

Shape shape(const Problem& problem) {
  return {.units_per_block = 1, .scratch_units = problem.ranks - 1, .largest_message = most_travellers(problem.ranks)};
}

int step_count(const Problem& problem, int /*rank*/) {
  return problem.ranks > 1 ? 3 + 2 * messages_of(problem.ranks) : 1;
}

Step step(const Problem& problem, int rank, int index) {
  const int ranks = problem.ranks;
  const UnitSet all = units(0, ranks - 1);
  if (index == 0) return move({output(rank, unit(rank))}, {input(rank, unit(rank))});
  if (index == 1) return move({scratch(rank, all)}, {input(rank, units((rank + 1) % ranks, ranks - 1))});
  if (index + 1 == step_count(problem, rank)) {
    const UnitSet from_before{
        .start = (rank + ranks - 1) % ranks, .length = 1, .stride = ranks - 1, .repeat = ranks - 1};
    return move({output(rank, from_before)}, {scratch(rank, all)});
  }
  index -= 2;
  int round = 0;
  Travellers blocks = travellers_of(ranks, round);
  for (; index >= 2 * blocks.messages(); blocks = travellers_of(ranks, ++round)) index -= 2 * blocks.messages();
  const bool is_send = index < blocks.messages();
  const Operand moved = scratch(rank, blocks.set(index % blocks.messages()));
  const Step exchange = is_send ? move({channel((rank + blocks.bit) % ranks)}, {moved})
                                : move({moved}, {channel((rank + ranks - blocks.bit) % ranks)});
  return index + 1 < 2 * blocks.messages() ? in_turn(exchange) : exchange;
}

Cost cost(const Problem& problem, int rank) {
  const int ranks = problem.ranks;
  if (ranks == 1) return {.steps = 1, .messages = 0, .units = 0, .depth = 1};
  int units_sent = 0;
  int depth = 3;
  for (int round = 0; round < rounds_of(ranks); ++round) {
    const Travellers blocks = travellers_of(ranks, round);
    units_sent += blocks.bit * blocks.full + blocks.partial;
    depth += blocks.messages() == 1 ? 3 : 4;
  }
  return {.steps = step_count(problem, rank), .messages = messages_of(ranks), .units = units_sent, .depth = depth};
}

/// Both messages of a round go through one channel before a rank looks for what it receives.
int least_slots(const Problem& problem, int /*slices*/) {
  int most = 0;
  for (int round = 0; problem.ranks > 1 && round < rounds_of(problem.ranks); ++round) {
    most = std::max(most, travellers_of(problem.ranks, round).messages());
  }
  return most;
}

}  // namespace

extern const Algorithm k_all_to_all_bruck;
const Algorithm k_all_to_all_bruck{
    .collective = Collective::all_to_all,
    .name = "bruck",
    .summary = "blocks travel by the bits of their distance; ceil(log2 P) rounds for every P, for small blocks",
    .source = "Bruck et al. 1997, doi:10.1109/71.642949",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .least_slots = least_slots,
    .synchronises = true,
};

}  // namespace tutti
