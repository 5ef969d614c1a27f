// SPDX-License-Identifier: Apache-2.0
// The first pass over the pairs: what is played, and what came of it.
#pragma once

#include <functional>
#include <vector>

#include "harness/accept/cells.h"
#include "harness/accept/findings.h"
#include "harness/accept/pair_player.h"
#include "harness/floors.h"

namespace tutti::harness::accept {

inline constexpr int kMostForAllPairs = 128;  ///< nodes; above it a sample of the circle's rounds, unless --full
inline constexpr int kSampledRounds = 64;
inline constexpr int kRoundsWithinLeaves = 6;
inline constexpr int kLeastTests = 24;  ///< of each node and direction: with few nodes every pair plays several times

/// The rounds of one sweep over `nodes`: each is a list of disjoint pairs.
[[nodiscard]] std::vector<Round> rounds_of_sweep(const std::vector<int>& nodes, const std::vector<int>& leaves,
                                                 bool is_full);
/// So many sweeps are played over `nodes` nodes.
[[nodiscard]] int sweeps_of(int nodes);

struct FirstPass {
  std::vector<Sample> samples;
  std::vector<Sample> latencies;  ///< of the first sweep; sender is the one that begins
  int rounds = 0;                 ///< of samples
  int sweeps = 0;
  int played = 0;  ///< groups of rounds, of those
  int planned = 0;
};
/// `on_round` is called with what has been played and what is planned. Stops early if the player is stopped.
[[nodiscard]] FirstPass play_first_pass(PairPlayer& player, const PairsPlan& plan,
                                        const std::function<void(int done, int planned)>& on_round);

}  // namespace tutti::harness::accept
