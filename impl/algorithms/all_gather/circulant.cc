// SPDX-License-Identifier: Apache-2.0
// Circulant all_gather with radix 4, for any P in ceil(log4 P) rounds of up to three messages: the rounds of
// circulant.h, upwards. Blocks are addressed modulo P, so that nothing need be rotated at the end.
//
// P = 5, rank 0 (skips 1, 2, 5):
//   step 0  OUT[0] <- IN[0]              step 4  CH(1) <- OUT[0], in turn
//   step 1  CH(4) <- IN[0], in turn      step 5  OUT[2,4) <- CH(2), in turn
//   step 2  OUT[1] <- CH(1)              step 6  OUT[4] <- CH(4)
//   step 3  CH(3) <- OUT[0,2), in turn
#include "impl/algorithms/circulant.h"

namespace tutti {
namespace {

constexpr int kRadix = 4;

Shape shape(const Problem& problem) { return circulant::all_gather_shape(problem, kRadix); }
int step_count(const Problem& problem, int /*rank*/) { return circulant::all_gather_step_count(problem, kRadix); }
Step step(const Problem& problem, int rank, int index) {
  return circulant::all_gather_step(problem, kRadix, rank, index);
}
Cost cost(const Problem& problem, int /*rank*/) { return circulant::all_gather_cost(problem, kRadix); }

}  // namespace

extern const Algorithm k_all_gather_circulant;
const Algorithm k_all_gather_circulant{
    .collective = Collective::all_gather,
    .name = "circulant",
    .summary = "circulant with radix 4; ceil(log4 P) rounds for every P, least bytes",
    .source = "Traeff 2024, arXiv:2410.14234, with radix k",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .least_slots = one_slot,
    .synchronises = true,
    .takes_counts = true,
};

}  // namespace tutti
