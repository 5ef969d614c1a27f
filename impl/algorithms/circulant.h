// SPDX-License-Identifier: Apache-2.0
// The rounds of circulant algorithms with radix k, for any P. Skips s0 = P > s1 = ceil(s0/k) > ... > 1. A round goes
// from s to t = ceil(s/k). In it, rank r holds the partial results of the s units from r on. Its peers are r + jt, j =
// 1, 2, ... To each it sends those of the next t units, or of the few that are left, from r + jt on. It adds what it
// receives from r - jt to the units from r on. Afterwards it holds the t units from r on, in the end unit r alone. The
// same rounds run backwards show every rank all units.
//
// Sends and receives of a round take turns, sends first, so that one slot is enough for any lengths.
//
// P = 11, k = 4: skips 11, 3, 1. Round 0: units [r+3, r+6), [r+6, r+9) and [r+9, r+11) leave; round 1: r+1 and r+2.
//
// Source: Traeff, Optimal, non-pipelined reduce-scatter and allreduce algorithms, arXiv:2410.14234, for k = 2.
#pragma once

#include <algorithm>

#include "impl/algorithms/algorithm.h"

namespace tutti::circulant {

/// From `wide` units held to `narrow`.
struct Round {
  int wide;
  int narrow;

  [[nodiscard]] int peers() const { return (wide + narrow - 1) / narrow - 1; }
  /// How many units go to peer j in [1, peers].
  [[nodiscard]] int length(int j) const { return std::min(narrow, wide - j * narrow); }
  /// MOVEs and transfers. All ranks send to their peers and then receive from as many. A rank that has but one peer
  /// must wait for the first of these.
  [[nodiscard]] int depth() const { return peers() == 1 ? 3 : 2 * peers(); }
};

/// One MOVE of the rounds.
struct Exchange {
  Round round;
  int peer;             ///< j
  bool is_send;         ///< else a receive
  bool is_first_round;  ///< the one from P units
  bool is_last_round;   ///< the one to a single unit
  bool takes_turns;     ///< with the next exchange: both belong to one round
};

class Rounds {
 public:
  Rounds(int ranks, int radix) : ranks_(ranks), radix_(radix) {}

  /// Messages that each rank sends.
  [[nodiscard]] int messages() const {
    return sum([](const Round& round) { return round.peers(); });
  }
  [[nodiscard]] int depth() const {
    return sum([](const Round& round) { return round.depth(); });
  }
  /// Units held after the first round.
  [[nodiscard]] int first_narrow() const { return narrow_of(ranks_); }
  /// Units of the longest message.
  [[nodiscard]] int largest_message() const {
    return ranks_ == 1 ? 0 : Round{.wide = ranks_, .narrow = first_narrow()}.length(1);
  }

  /// The exchange at `index` in [0, 2 messages), the rounds running down to one unit.
  [[nodiscard]] Exchange down(int index) const {
    int wide = ranks_;
    while (index >= 2 * round_from(wide).peers()) {
      index -= 2 * round_from(wide).peers();
      wide = narrow_of(wide);
    }
    return exchange(round_from(wide), index);
  }
  /// The same for the rounds running up to all units.
  [[nodiscard]] Exchange up(int index) const {
    int wide = ranks_;
    int before = 2 * (messages() - round_from(wide).peers());  // exchanges of the rounds below
    while (index < before) {
      wide = narrow_of(wide);
      before -= 2 * round_from(wide).peers();
    }
    return exchange(round_from(wide), index - before);
  }

 private:
  [[nodiscard]] int narrow_of(int wide) const { return (wide + radix_ - 1) / radix_; }
  [[nodiscard]] Round round_from(int wide) const { return {.wide = wide, .narrow = narrow_of(wide)}; }

  template <class F>
  [[nodiscard]] int sum(F of) const {
    int total = 0;
    for (int wide = ranks_; wide > 1; wide = narrow_of(wide)) total += of(round_from(wide));
    return total;
  }

  [[nodiscard]] Exchange exchange(const Round& round, int index) const {
    const int peers = round.peers();
    return {.round = round,
            .peer = index % peers + 1,
            .is_send = index < peers,
            .is_first_round = round.wide == ranks_,
            .is_last_round = round.narrow == 1,
            .takes_turns = index + 1 < 2 * peers};
  }

  int ranks_;
  int radix_;
};

// What the algorithms of each collective are, by radix.

[[nodiscard]] Shape all_reduce_shape(const Problem& problem, int radix);
[[nodiscard]] int all_reduce_step_count(const Problem& problem, int radix);
[[nodiscard]] Step all_reduce_step(const Problem& problem, int radix, int rank, int index);
[[nodiscard]] Cost all_reduce_cost(const Problem& problem, int radix);

[[nodiscard]] Shape all_gather_shape(const Problem& problem, int radix);
[[nodiscard]] int all_gather_step_count(const Problem& problem, int radix);
[[nodiscard]] Step all_gather_step(const Problem& problem, int radix, int rank, int index);
[[nodiscard]] Cost all_gather_cost(const Problem& problem, int radix);

[[nodiscard]] Shape reduce_scatter_shape(const Problem& problem, int radix);
[[nodiscard]] int reduce_scatter_step_count(const Problem& problem, int radix);
[[nodiscard]] Step reduce_scatter_step(const Problem& problem, int radix, int rank, int index);
[[nodiscard]] Cost reduce_scatter_cost(const Problem& problem, int radix);

}  // namespace tutti::circulant
