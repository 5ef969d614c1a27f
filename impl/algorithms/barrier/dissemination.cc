// SPDX-License-Identifier: Apache-2.0
// Dissemination barrier: in round k every rank tells rank r + 2^k and hears from rank r - 2^k. After ceil(log2 P)
// rounds everybody has heard, directly or not, of everybody's arrival; right for every P.
//
// P = 4, rank 0:
//   step 0  SIGNAL {1} phase 1    step 2  SIGNAL {2} phase 2
//   step 1  WAIT {3} phase 1      step 3  WAIT {2} phase 2
//
// Source: Hensgen, Finkel & Manber, Two algorithms for barrier synchronization, 1988.
#include <bit>

#include "impl/algorithms/algorithm.h"

namespace tutti {
namespace {

int rounds(int ranks) { return std::bit_width(static_cast<unsigned>(ranks - 1)); }

Shape shape(const Problem& /*problem*/) { return {}; }

int step_count(const Problem& problem, int /*rank*/) { return 2 * rounds(problem.ranks); }

Step step(const Problem& problem, int rank, int index) {
  const int ranks = problem.ranks;
  const int round = index / 2;
  const int distance = 1 << round;
  if (index % 2 == 0) return signal(only((rank + distance) % ranks), round + 1);
  return wait(only((rank + ranks - distance) % ranks), round + 1);
}

Cost cost(const Problem& problem, int rank) {
  return {.steps = step_count(problem, rank), .messages = 0, .units = 0, .depth = rounds(problem.ranks)};
}

}  // namespace

extern const Algorithm k_barrier_dissemination;
const Algorithm k_barrier_dissemination{
    .collective = Collective::barrier,
    .name = "dissemination",
    .summary = "tell rank r + 2^k, hear from rank r - 2^k; ceil(log2 P) rounds for every P",
    .source = "Hensgen, Finkel & Manber 1988, doi:10.1007/BF01379320",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .synchronises = true,
};

}  // namespace tutti
