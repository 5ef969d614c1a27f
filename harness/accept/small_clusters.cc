// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/small_clusters.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "harness/accept/cells.h"
#include "harness/accept/screen.h"
#include "harness/accept/verdict.h"

namespace tutti::harness::accept {

std::optional<Finding> link_of_three(const FirstPass& pass, const PairPlayer& player, const Limits& limits) {
  constexpr int kTriangle = 3, kHalves = 2;
  const std::vector<int>& nodes = player.nodes();
  if (std::ssize(nodes) != kTriangle || pass.sweeps == 0) return std::nullopt;
  std::vector<Matrix> sweeps(at(pass.sweeps), Matrix(static_cast<int>(player.leaves().size())));
  const int rounds = std::max(1, pass.rounds / pass.sweeps);
  for (const Sample& one : pass.samples) {
    sweeps[at(std::min(one.round / rounds, pass.sweeps - 1))](one.sender, one.receiver) = one.log_speed;
  }
  // A path in a sweep and the two beside it, so that one slow test is no level.
  const auto around = [&](int sweep, int sender, int receiver) {
    std::vector<double> values;
    for (int one = std::max(0, sweep - 1); one <= std::min(pass.sweeps - 1, sweep + 1); ++one)
      values.push_back(sweeps[at(one)](sender, receiver));
    return high_median_of_numbers(values);
  };
  // How much slower a path is than the slowest of those with the third node, by half of the pass.
  const auto judged = [&](int sender, int receiver) {
    const int third = nodes[0] + nodes[1] + nodes[2] - sender - receiver;
    std::vector<std::vector<double>> halves(kHalves);
    for (int sweep = 0; sweep < pass.sweeps; ++sweep) {
      const double others = std::min({around(sweep, sender, third), around(sweep, third, sender),
                                      around(sweep, receiver, third), around(sweep, third, receiver)});
      const double off = sweeps[at(sweep)](sender, receiver) - others;
      if (!std::isnan(off)) halves[at(sweep * kHalves / pass.sweeps)].push_back(off);
    }
    return judge(halves, limits);
  };
  std::optional<Finding> found;
  for (const int sender : nodes) {
    for (const int receiver : nodes) {
      if (sender == receiver || player.is_lost(sender, receiver)) continue;
      const Judgement there = judged(sender, receiver);
      const bool is_slow = there.verdict == Verdict::fail && !there.is_fast;
      const bool is_open = there.verdict == Verdict::undecided && there.middle < margin_of(limits);
      if (!is_slow && !is_open) continue;
      const bool is_surer =
          !found || (is_slow && found->judgement.verdict != Verdict::fail) ||
          (is_slow == (found->judgement.verdict == Verdict::fail) && there.middle < found->judgement.middle);
      if (!is_surer) continue;
      const bool are_both = judged(receiver, sender).middle < kIsBothWays * margin_of(limits);
      found = Finding{.what = are_both ? Class::link : Class::link_dir,
                      .first = are_both ? std::min(sender, receiver) : sender,
                      .second = are_both ? std::max(sender, receiver) : receiver,
                      .judgement = there,
                      .tests = pass.sweeps,
                      .visits = kHalves,
                      .thirds = {nodes[0] + nodes[1] + nodes[2] - sender - receiver}};
    }
  }
  return found;
}

std::optional<Finding> uplink_of_two(const FirstPass& pass, const PairPlayer& player, const Limits& limits) {
  constexpr int kHalves = 2;
  constexpr std::size_t kFew = 4;
  std::set<int> leaves;
  for (const int node : player.nodes()) leaves.insert(player.leaves()[at(node)]);
  if (leaves.size() != 2 || player.nodes().size() <= kFew) return std::nullopt;
  const int first = *leaves.begin(), second = *leaves.rbegin();
  std::map<std::pair<int, std::pair<int, int>>, BothWays> pairs;  // by two rounds, and the nodes
  for (const Sample& one : pass.samples) {
    if (!player.is_far(one.sender, one.receiver)) continue;
    const bool is_out = player.leaves()[at(one.sender)] == first;
    auto [kept, is_new] = pairs.try_emplace({one.round / 2, std::minmax(one.sender, one.receiver)},
                                            BothWays{.out = kNothing, .in = kNothing});
    kept->second.of(is_out ? Way::out : Way::in) = one.log_speed;
  }
  for (const bool is_out : {true, false}) {
    std::vector<std::vector<double>> halves(kHalves);
    int tests = 0;
    for (const auto& [key, speeds] : pairs) {
      const double off = is_out ? speeds.out - speeds.in : speeds.in - speeds.out;
      if (std::isnan(off)) continue;
      halves[at(2 * key.first * kHalves / std::max(1, pass.rounds))].push_back(off);
      ++tests;
    }
    const Judgement judgement = judge(halves, limits);
    if (judgement.verdict != Verdict::fail || judgement.is_fast) continue;
    return Finding{.what = Class::uplink_dir,
                   .first = is_out ? first : second,
                   .second = is_out ? second : first,
                   .judgement = judgement,
                   .tests = tests,
                   .visits = kHalves};
  }
  return std::nullopt;
}

}  // namespace tutti::harness::accept
