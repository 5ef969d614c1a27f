// SPDX-License-Identifier: Apache-2.0
// Circulant reduce_scatter with radix 4, for any P in ceil(log4 P) rounds of up to three messages: the rounds of
// circulant.h, downwards. The partial results of the blocks from the rank's own on live in scratch, so that the input
// stays as it is. Those of the last round live in the output.
//
// P = 5, rank 0 (skips 5, 2, 1):
//   step 0  CH(2) <- IN[2,4), in turn                 step 3  SCR[0] <- CH(1) op SCR[0]
//   step 1  CH(4) <- IN[4], in turn                   step 4  CH(1) <- SCR[1], in turn
//   step 2  SCR[0,2) <- CH(3) op IN[0,2), in turn     step 5  OUT[0] <- CH(4) op SCR[0]
#include "impl/algorithms/circulant.h"

namespace tutti {
namespace {

constexpr int kRadix = 4;

Shape shape(const Problem& problem) { return circulant::reduce_scatter_shape(problem, kRadix); }
int step_count(const Problem& problem, int /*rank*/) { return circulant::reduce_scatter_step_count(problem, kRadix); }
Step step(const Problem& problem, int rank, int index) {
  return circulant::reduce_scatter_step(problem, kRadix, rank, index);
}
Cost cost(const Problem& problem, int /*rank*/) { return circulant::reduce_scatter_cost(problem, kRadix); }

}  // namespace

extern const Algorithm k_reduce_scatter_circulant;
const Algorithm k_reduce_scatter_circulant{
    .collective = Collective::reduce_scatter,
    .name = "circulant",
    .summary = "circulant with radix 4; ceil(log4 P) rounds for every P, least bytes, partial results in scratch",
    .source = "Traeff 2024, arXiv:2410.14234, with radix k",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .least_slots = one_slot,
    .synchronises = true,
};

}  // namespace tutti
