// SPDX-License-Identifier: Apache-2.0
// Circulant all_gather with radix 2, for any P in ceil(log2 P) rounds: the rounds of circulant.h, upwards. Blocks are
// addressed modulo P, so that nothing need be rotated at the end.
//
// P = 5, rank 0 (skips 1, 2, 3, 5):
//   step 0  OUT[0] <- IN[0]              step 4  OUT[2] <- CH(2)
//   step 1  CH(4) <- IN[0], in turn      step 5  CH(2) <- OUT[0,2), in turn
//   step 2  OUT[1] <- CH(1)              step 6  OUT[3,5) <- CH(3)
//   step 3  CH(3) <- OUT[0], in turn
#include "impl/algorithms/circulant.h"

namespace tutti {
namespace {

constexpr int kRadix = 2;

Shape shape(const Problem& problem) { return circulant::all_gather_shape(problem, kRadix); }
int step_count(const Problem& problem, int /*rank*/) { return circulant::all_gather_step_count(problem, kRadix); }
Step step(const Problem& problem, int rank, int index) {
  return circulant::all_gather_step(problem, kRadix, rank, index);
}
Cost cost(const Problem& problem, int /*rank*/) { return circulant::all_gather_cost(problem, kRadix); }

}  // namespace

extern const Algorithm k_all_gather_halving;
const Algorithm k_all_gather_halving{
    .collective = Collective::all_gather,
    .name = "halving",
    .summary = "circulant doubling; ceil(log2 P) rounds for every P, least bytes",
    .source = "Traeff 2024, arXiv:2410.14234",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .least_slots = one_slot,
    .synchronises = true,
    .takes_counts = true,
};

}  // namespace tutti
