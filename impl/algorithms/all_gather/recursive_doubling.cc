// SPDX-License-Identifier: Apache-2.0
// Recursive doubling all_gather, along the edges of a hypercube. In round k a rank exchanges all that it has, 2^k
// blocks. Its partner is the rank with a number that differs in bit k. Where P is not a power of two, the first 2 E
// ranks form pairs; E is what P has beyond one. The odd rank of a pair gives its block to the even one before the
// rounds. It gets the others' blocks after them. Pairs and single ranks are the corners; a subcube's blocks lie side by
// side.
//
// P = 3, corners {0, 1} and {2}:
//   rank 0: step 0  OUT[0] <- IN[0]                rank 1: step 0  CH(0) <- IN[0]
//           step 1  OUT[1] <- CH(1)                        step 1  OUT[1] <- IN[0]
//           step 2  CH(2) <- OUT[0,2), in turn             step 2  OUT[2,4) <- CH(0) (block 3 is 0)
//           step 3  OUT[2] <- CH(2)
//           step 4  CH(1) <- OUT[2,4)
#include <bit>

#include "impl/algorithms/algorithm.h"

namespace tutti {
namespace {

int rounds(int ranks) { return std::bit_width(static_cast<unsigned>(ranks)) - 1; }
int corners(int ranks) { return 1 << rounds(ranks); }
int pairs(int ranks) { return ranks - corners(ranks); }

/// The first rank of a corner, or P after the last one.
int first_of(int ranks, int corner) { return corner < pairs(ranks) ? 2 * corner : corner + pairs(ranks); }
int corner_of(int ranks, int rank) { return rank < 2 * pairs(ranks) ? rank / 2 : rank - pairs(ranks); }
bool is_in_pair(int ranks, int rank) { return rank < 2 * pairs(ranks); }
bool is_second(int ranks, int rank) { return is_in_pair(ranks, rank) && rank % 2 == 1; }

/// Blocks of the subcube of `corner` with 2^round corners.
UnitSet subcube(int ranks, int corner, int round) {
  const int begin = corner & ~((1 << round) - 1);
  const int first = first_of(ranks, begin);
  return units(first, first_of(ranks, begin + (1 << round)) - first);
}
/// All blocks but that of `rank`.
UnitSet all_but(int ranks, int rank) { return units((rank + 1) % ranks, ranks - 1); }

Shape shape(const Problem& problem) {
  const int ranks = problem.ranks;
  return {.units_per_block = 1, .largest_message = pairs(ranks) > 0 ? ranks - 1 : ranks / 2};
}

int step_count(const Problem& problem, int rank) {
  if (is_second(problem.ranks, rank)) return 3;
  return 1 + 2 * rounds(problem.ranks) + (is_in_pair(problem.ranks, rank) ? 2 : 0);
}

Step step_of_second(int ranks, int rank, int index) {
  if (index == 0) return move({channel(rank - 1)}, {input(rank, unit(0))});
  if (index == 1) return move({output(rank, unit(rank))}, {input(rank, unit(0))});
  return move({output(rank, all_but(ranks, rank))}, {channel(rank - 1)});
}

Step step(const Problem& problem, int rank, int index) {
  const int ranks = problem.ranks;
  if (is_second(ranks, rank)) return step_of_second(ranks, rank, index);
  if (index == 0) return move({output(rank, unit(rank))}, {input(rank, unit(0))});
  if (is_in_pair(ranks, rank)) {
    if (index == 1) return move({output(rank, unit(rank + 1))}, {channel(rank + 1)});
    --index;
  }
  const int round = (index - 1) / 2;
  if (round == rounds(ranks)) return move({channel(rank + 1)}, {output(rank, all_but(ranks, rank + 1))});
  const int corner = corner_of(ranks, rank);
  const int other = corner ^ (1 << round);
  const int peer = first_of(ranks, other);
  if (index % 2 == 1) return in_turn(move({channel(peer)}, {output(rank, subcube(ranks, corner, round))}));
  return move({output(rank, subcube(ranks, other, round))}, {channel(peer)});
}

/// A round is send, transfer, receive; so is what a second rank gets. Pairs start two late. In each of the last two
/// rounds they make up for one of it if their partner there is a single rank. The last round's partner is one if all
/// pairs lie in the lower half of the corners; the round before it needs the lower quarter.
int depth_of(int ranks) {
  const int alone = 1 + 3 * rounds(ranks);
  if (pairs(ranks) == 0) return alone;
  const int late = 4 * pairs(ranks) <= corners(ranks) ? 0 : 2 * pairs(ranks) <= corners(ranks) ? 1 : 2;
  return alone + late + 3;
}

Cost cost(const Problem& problem, int rank) {
  const int ranks = problem.ranks;
  const int depth = depth_of(ranks);
  if (is_second(ranks, rank)) return {.steps = 3, .messages = 1, .units = 1, .depth = depth};
  std::int64_t sent = 0;
  for (int round = 0; round < rounds(ranks); ++round) {
    sent += count_of(subcube(ranks, corner_of(ranks, rank), round));
  }
  const bool has_second = is_in_pair(ranks, rank);
  return {.steps = step_count(problem, rank),
          .messages = rounds(ranks) + (has_second ? 1 : 0),
          .units = sent + (has_second ? ranks - 1 : 0),
          .depth = depth};
}

}  // namespace

extern const Algorithm k_all_gather_recursive_doubling;
const Algorithm k_all_gather_recursive_doubling{
    .collective = Collective::all_gather,
    .name = "recursive_doubling",
    .summary = "exchanges along the edges of a hypercube; log2 P rounds, two more where P is not a power of two",
    .source = "recursive doubling, as in MPICH; hypercube of nccl-tests",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .least_slots = one_slot,
    .synchronises = true,
};

}  // namespace tutti
