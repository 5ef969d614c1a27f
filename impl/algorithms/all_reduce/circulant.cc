// SPDX-License-Identifier: Apache-2.0
// Circulant all_reduce with radix 4, for any P in 2 ceil(log4 P) rounds. The rounds of circulant.h go down to the sum
// of one unit, and up again to show it to everyone. As many bytes as halving, in half the rounds of up to three
// messages. Partial results live in the output.
//
// P = 5, rank 0 (skips 5, 2, 1):
//   step 0  CH(2) <- IN[2,4), in turn               step 6   CH(4) <- OUT[0], in turn
//   step 1  CH(4) <- IN[4], in turn                 step 7   OUT[1] <- CH(1)
//   step 2  OUT[0,2) <- CH(3) op IN[0,2), in turn   step 8   CH(3) <- OUT[0,2), in turn
//   step 3  OUT[0] <- CH(1) op OUT[0]               step 9   CH(1) <- OUT[0], in turn
//   step 4  CH(1) <- OUT[1], in turn                step 10  OUT[2,4) <- CH(2), in turn
//   step 5  OUT[0] <- CH(4) op OUT[0]               step 11  OUT[4] <- CH(4)
#include "impl/algorithms/circulant.h"

namespace tutti {
namespace {

constexpr int kRadix = 4;

Shape shape(const Problem& problem) { return circulant::all_reduce_shape(problem, kRadix); }
int step_count(const Problem& problem, int /*rank*/) { return circulant::all_reduce_step_count(problem, kRadix); }
Step step(const Problem& problem, int rank, int index) {
  return circulant::all_reduce_step(problem, kRadix, rank, index);
}
Cost cost(const Problem& problem, int /*rank*/) { return circulant::all_reduce_cost(problem, kRadix); }

}  // namespace

extern const Algorithm k_all_reduce_circulant;
const Algorithm k_all_reduce_circulant{
    .collective = Collective::all_reduce,
    .name = "circulant",
    .summary = "circulant with radix 4, down and up; 2 ceil(log4 P) rounds for every P, least bytes",
    .source = "Traeff 2024, arXiv:2410.14234, with radix k",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .least_slots = one_slot,
    .synchronises = true,
};

}  // namespace tutti
