// SPDX-License-Identifier: Apache-2.0
// A window of messages in one direction, which bandwidth and message_rate have in common. The lower rank of each pair
// sends, the other one acknowledges when it has them all. Block m of the input is message m.
#pragma once

#include "impl/algorithms/algorithm.h"

namespace tutti::window {

/// Nobody has a partner where there is one rank.
inline bool is_idle(const Problem& problem, int rank) { return partner_of(problem, rank) < 0; }
inline bool sends(const Problem& problem, int rank) { return rank < partner_of(problem, rank); }

/// One announcement for each message; the receiver reads it, and its acknowledgement ends all of them.
namespace direct {

inline Shape shape(const Problem& problem) { return {.units_per_block = 1, .exposes_input = problem.ranks > 1}; }

inline int step_count(const Problem& problem, int rank) {
  const int messages = problem.pairing.window;
  if (is_idle(problem, rank)) return 0;
  return sends(problem, rank) ? messages + 1 : 2 * messages + 1;
}

inline Step step(const Problem& problem, int rank, int index) {
  const int other = partner_of(problem, rank), messages = problem.pairing.window;
  if (sends(problem, rank)) {
    if (index == messages) return wait(only(other), messages + 1);
    return signal(only(other), index + 1, {.space = Space::input, .units = unit(index)});
  }
  const int message = index / 2;
  if (message == messages) return signal(only(other), messages + 1);
  if (index % 2 == 0) return wait(only(other), message + 1);
  return move({output(rank, unit(message))}, {input(other, unit(message))});
}

inline Cost cost(const Problem& problem, int rank) {
  const int messages = problem.pairing.window;
  const bool reads = !is_idle(problem, rank) && !sends(problem, rank);
  return {.steps = step_count(problem, rank),
          .messages = 0,
          .units = reads ? messages : 0,
          .depth = problem.ranks > 1 ? messages + 2 : 0};
}

}  // namespace direct

/// Each message goes through the channel; the acknowledgement is a flag.
namespace channels {

inline Shape shape(const Problem& problem) {
  return {.units_per_block = 1, .largest_message = problem.ranks > 1 ? 1 : 0};
}

inline int step_count(const Problem& problem, int rank) {
  return is_idle(problem, rank) ? 0 : problem.pairing.window + 1;
}

inline Step step(const Problem& problem, int rank, int index) {
  const int other = partner_of(problem, rank);
  const bool is_last = index == problem.pairing.window;
  if (sends(problem, rank)) return is_last ? wait(only(other), 1) : move({channel(other)}, {input(rank, unit(index))});
  return is_last ? signal(only(other), 1) : move({output(rank, unit(index))}, {channel(other)});
}

inline Cost cost(const Problem& problem, int rank) {
  const int messages = problem.pairing.window;
  const int sent = sends(problem, rank) ? messages : 0;
  return {.steps = step_count(problem, rank),
          .messages = sent,
          .units = sent,
          .depth = problem.ranks > 1 ? messages + 3 : 0};
}

}  // namespace channels

}  // namespace tutti::window
