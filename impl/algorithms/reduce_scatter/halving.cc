// SPDX-License-Identifier: Apache-2.0
// Circulant reduce_scatter with radix 2, for any P in ceil(log2 P) rounds: the rounds of circulant.h, downwards. The
// partial results of the blocks from the rank's own on live in scratch, so that the input stays as it is. Where P is
// odd, the first round neither sends nor receives one block: it is copied there.
//
// P = 5, rank 0 (skips 5, 3, 2, 1):
//   step 0  SCR[2] <- IN[2]                  step 4  SCR[0] <- CH(3) op SCR[0]
//   step 1  CH(3) <- IN[3,5), in turn        step 5  CH(1) <- SCR[1], in turn
//   step 2  SCR[0,2) <- CH(2) op IN[0,2)     step 6  OUT[0] <- CH(4) op SCR[0]
//   step 3  CH(2) <- SCR[2], in turn
//
// Source: Traeff, Optimal, non-pipelined reduce-scatter and allreduce algorithms, arXiv:2410.14234.
#include "impl/algorithms/circulant.h"

namespace tutti {
namespace {

constexpr int kRadix = 2;

Shape shape(const Problem& problem) { return circulant::reduce_scatter_shape(problem, kRadix); }
int step_count(const Problem& problem, int /*rank*/) { return circulant::reduce_scatter_step_count(problem, kRadix); }
Step step(const Problem& problem, int rank, int index) {
  return circulant::reduce_scatter_step(problem, kRadix, rank, index);
}
Cost cost(const Problem& problem, int /*rank*/) { return circulant::reduce_scatter_cost(problem, kRadix); }

}  // namespace

extern const Algorithm k_reduce_scatter_halving;
const Algorithm k_reduce_scatter_halving{
    .collective = Collective::reduce_scatter,
    .name = "halving",
    .summary = "circulant halving; ceil(log2 P) rounds for every P, least bytes, partial results in scratch",
    .source = "Traeff 2024, arXiv:2410.14234",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .least_slots = one_slot,
    .synchronises = true,
};

}  // namespace tutti
