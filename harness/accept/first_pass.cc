// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/first_pass.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "harness/statistics/splitmix.h"

namespace tutti::harness::accept {
namespace {

Round of_nodes(Round places, const std::vector<int>& nodes) {
  for (Transfer& pair : places) {
    pair.sender = nodes[static_cast<std::size_t>(pair.sender)];
    pair.receiver = nodes[static_cast<std::size_t>(pair.receiver)];
  }
  return places;
}

}  // namespace

int sweeps_of(int nodes) { return std::max(1, (kLeastTests + nodes - 2) / std::max(1, nodes - 1)); }

std::vector<Round> rounds_of_sweep(const std::vector<int>& nodes, const std::vector<int>& leaves, bool is_full) {
  const int count = static_cast<int>(nodes.size());
  std::vector<Round> rounds;
  if (count <= kMostForAllPairs || is_full) {
    for (int round = 0; round < circle_rounds(count); ++round) rounds.push_back(of_nodes(circle(count, round), nodes));
    return rounds;
  }
  std::map<int, std::vector<int>> by_leaf;
  for (const int node : nodes) by_leaf[leaves[static_cast<std::size_t>(node)]].push_back(node);
  for (int turn = 0; turn < kRoundsWithinLeaves; ++turn) {
    Round within;
    for (const auto& [leaf, members] : by_leaf) {
      const int size = static_cast<int>(members.size());
      if (size < 2) continue;
      const std::vector<int> chosen = sampled_rounds(size, kRoundsWithinLeaves);
      if (turn >= std::ssize(chosen)) continue;
      const Round part = of_nodes(circle(size, chosen[static_cast<std::size_t>(turn)]), members);
      within.insert(within.end(), part.begin(), part.end());
    }
    if (!within.empty()) rounds.push_back(std::move(within));
  }
  for (const int round : sampled_rounds(count, kSampledRounds)) rounds.push_back(of_nodes(circle(count, round), nodes));
  return rounds;
}

FirstPass play_first_pass(PairPlayer& player, const PairsPlan& plan,
                          const std::function<void(int done, int planned)>& on_round) {
  std::vector<int> nodes = player.nodes();
  FirstPass pass;
  pass.sweeps = sweeps_of(static_cast<int>(nodes.size()));
  pass.planned = pass.sweeps * static_cast<int>(rounds_of_sweep(nodes, player.leaves(), plan.is_full).size());
  SplitMix random(plan.seed);
  for (int sweep = 0; sweep < pass.sweeps; ++sweep) {
    // In the next sweep other pairs share a round, so what a round had in common can be told from what its pairs are.
    if (pass.sweeps > 1) random.shuffle(nodes);
    for (const Round& pairs : rounds_of_sweep(nodes, player.leaves(), plan.is_full)) {
      if (player.is_stopped()) return pass;
      on_round(++pass.played, pass.planned);
      std::vector<Test> tests{{.measure = Measure::bandwidth, .bytes = plan.bytes},
                              {.measure = Measure::back, .bytes = plan.bytes}};
      if (sweep == 0) tests.push_back({.measure = Measure::latency, .bytes = plan.latency_bytes});
      const auto speeds = player.play(pairs, tests);
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        const auto& [sender, receiver] = pairs[i];
        pass.samples.push_back(
            {.round = pass.rounds, .sender = sender, .receiver = receiver, .log_speed = speeds[i][0]});
        pass.samples.push_back(
            {.round = pass.rounds + 1, .sender = receiver, .receiver = sender, .log_speed = speeds[i][1]});
        if (sweep > 0) continue;
        pass.latencies.push_back(
            {.round = pass.rounds, .sender = sender, .receiver = receiver, .log_speed = speeds[i][2]});
      }
      pass.rounds += 2;
    }
  }
  return pass;
}

}  // namespace tutti::harness::accept
