// SPDX-License-Identifier: Apache-2.0
// bibandwidth over channels, in pairs of neighbouring ranks. Both send their messages back to back, up to four ahead of
// what they have received. So neither waits for the other's answer to each. The last of an odd number of ranks is idle.
//
// P = 3, a window of one message, rank 0:
//   step 0  CH(1) <- IN[0]
//   step 1  OUT[0] <- CH(1)
#include <algorithm>

#include "impl/algorithms/window.h"

namespace tutti {
namespace {

constexpr int kAhead = 4;

Shape shape(const Problem& problem) { return {.units_per_block = 1, .largest_message = problem.ranks > 1 ? 1 : 0}; }

int step_count(const Problem& problem, int rank) {
  return window::is_idle(problem, rank) ? 0 : 2 * problem.pairing.window;
}

/// The messages that are sent first; then a receive and a send in turn, while there are any to send.
int ahead_of(const Problem& problem) { return std::min(kAhead, problem.pairing.window); }

Step step(const Problem& problem, int rank, int index) {
  const int other = partner_of(problem, rank), messages = problem.pairing.window, ahead = ahead_of(problem);
  const auto send = [&](int message) { return move({channel(other)}, {input(rank, unit(message))}); };
  const auto receive = [&](int message) { return move({output(rank, unit(message))}, {channel(other)}); };
  if (index < ahead) return send(index);
  const int later = index - ahead;
  if (later >= 2 * (messages - ahead)) return receive(index - messages);
  return later % 2 == 0 ? receive(later / 2) : send(ahead + later / 2);
}

Cost cost(const Problem& problem, int rank) {
  const int messages = problem.pairing.window;
  const int sent = window::is_idle(problem, rank) ? 0 : messages;
  // A window of one message waits for the other's; a longer one finds it there.
  const int depth = messages == 1 ? 3 : 2 * messages;
  return {.steps = step_count(problem, rank), .messages = sent, .units = sent, .depth = problem.ranks > 1 ? depth : 0};
}

int least_slots(const Problem& problem, int slices) { return problem.ranks > 1 ? ahead_of(problem) * slices : 0; }

}  // namespace

extern const Algorithm k_bibandwidth_channel;
const Algorithm k_bibandwidth_channel{
    .collective = Collective::bibandwidth,
    .name = "channel",
    .summary = "neighbours send each other a window of messages, up to four ahead of what has arrived",
    .source = "osu_bibw of the OSU benchmarks",
    .shape = shape,
    .step_count = step_count,
    .step = step,
    .cost = cost,
    .least_slots = least_slots,
};

}  // namespace tutti
