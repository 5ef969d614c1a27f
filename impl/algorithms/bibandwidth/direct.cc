// SPDX-License-Identifier: Apache-2.0
// Direct bibandwidth, in pairs of neighbouring ranks: each announces its whole window at once and reads the other's,
// message by message. One announcement for each would not do: a wait for the second of them says that the first message
// may be overwritten. In place the inputs are staged in scratch, as private buffers are. The last of an odd number of
// ranks is idle.
//
// P = 3, a window of one message, rank 0:
//   step 0  SIGNAL {1} phase 1, read IN[0]    step 3  SIGNAL {1} phase 2
//   step 1  WAIT {1} phase 1                  step 4  WAIT {1} phase 2
//   step 2  OUT[0] <- IN[0]@1
#include "impl/algorithms/window.h"

namespace tutti {
namespace {

Shape shape(const Problem& problem) { return {.units_per_block = 1, .exposes_input = problem.ranks > 1}; }

int step_count(const Problem& problem, int rank) {
  return window::is_idle(problem, rank) ? 0 : problem.pairing.window + 4;
}

Step step(const Problem& problem, int rank, int index) {
  const int other = partner_of(problem, rank), messages = problem.pairing.window;
  if (index == 0) return signal(only(other), 1, {.space = Space::input, .units = units(0, messages)});
  if (index == 1) return wait(only(other), 1);
  const int message = index - 2;
  if (message < messages) return move({output(rank, unit(message))}, {input(other, unit(message))});
  return closing_reads(message == messages ? signal(only(other), 2) : wait(only(other), 2));
}

Cost cost(const Problem& problem, int rank) {
  const int messages = problem.pairing.window;
  return {.steps = step_count(problem, rank),
          .messages = 0,
          .units = window::is_idle(problem, rank) ? 0 : messages,
          .depth = problem.ranks > 1 ? messages + 2 : 0};
}

}  // namespace

extern const Algorithm k_bibandwidth_direct;
const Algorithm k_bibandwidth_direct{
    .collective = Collective::bibandwidth,
    .name = "direct",
    .summary = "neighbours announce a window of messages each and read the other's; for shared memory",
    .source = "osu_bibw by remote reads",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .stages_in_place = true,
};

}  // namespace tutti
