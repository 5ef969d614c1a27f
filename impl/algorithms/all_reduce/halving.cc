// SPDX-License-Identifier: Apache-2.0
// Circulant halving all_reduce, for any P in 2 ceil(log2 P) rounds. The rounds of circulant.h with radix 2 go down to
// the sum of one unit, and up again to show it to everyone. Partial results live in the output; where P is odd, the one
// unit that the first round neither sends nor receives is copied there.
//
// P = 5, rank 0 (skips 5, 3, 2, 1):
//   step 0  OUT[2] <- IN[2]                step 7   CH(4) <- OUT[0], in turn
//   step 1  CH(3) <- IN[3,5), in turn      step 8   OUT[1] <- CH(1)
//   step 2  OUT[0,2) <- CH(2) op IN[0,2)   step 9   CH(3) <- OUT[0], in turn
//   step 3  CH(2) <- OUT[2], in turn       step 10  OUT[2] <- CH(2)
//   step 4  OUT[0] <- CH(3) op OUT[0]      step 11  CH(2) <- OUT[0,2), in turn
//   step 5  CH(1) <- OUT[1], in turn       step 12  OUT[3,5) <- CH(3)
//   step 6  OUT[0] <- CH(4) op OUT[0]      (unit 0 is complete: final)
//
// Source: Traeff, Optimal, non-pipelined reduce-scatter and allreduce algorithms, arXiv:2410.14234.
#include "impl/algorithms/circulant.h"

namespace tutti {
namespace {

constexpr int kRadix = 2;

Shape shape(const Problem& problem) { return circulant::all_reduce_shape(problem, kRadix); }
int step_count(const Problem& problem, int /*rank*/) { return circulant::all_reduce_step_count(problem, kRadix); }
Step step(const Problem& problem, int rank, int index) {
  return circulant::all_reduce_step(problem, kRadix, rank, index);
}
Cost cost(const Problem& problem, int /*rank*/) { return circulant::all_reduce_cost(problem, kRadix); }

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
    .least_slots = one_slot,
    .synchronises = true,
};

}  // namespace tutti
