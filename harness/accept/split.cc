// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/split.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>

#include "harness/accept/screen.h"
#include "harness/accept/two_speeds.h"

namespace tutti::harness::accept {
namespace {

constexpr double kAlike = 0.5;  // of the margin: nodes that differ less are of one kind

bool is_among(const std::vector<int>& nodes, int node) { return std::ranges::find(nodes, node) != nodes.end(); }

}  // namespace

std::optional<Split> split_of(const Matrix& cells, const PairPlayer& player, const Limits& limits) {
  constexpr std::size_t kFewSlow = 4;
  constexpr int kFewFast = 3;
  constexpr double kManySlow = 0.3, kGroupShare = 0.125;  // of the nodes
  constexpr double kSureGap = 0.33, kLeastGap = 0.2;
  constexpr double kSureDoubts = 4, kLeastDoubts = 3;
  constexpr double kOneWay = 0.5;  // of the difference: faults may be of one direction, kinds of nodes are not
  constexpr int kMostTurns = 4;
  std::set<int> outliers;
  auto speeds = two_speeds_of(cells, player);
  for (int turn = 0; turn < kMostTurns && speeds && speeds->slower.size() < kFewSlow; ++turn) {  // a few slow nodes
    if (static_cast<double>(speeds->slower.size()) > kManySlow * (speeds->faster + 1.0)) break;
    outliers.insert(speeds->slower.begin(), speeds->slower.end());
    speeds = two_speeds_of(cells, player, outliers);
  }
  if (!speeds || speeds->gap < kLeastGap || speeds->difference > suspicion(limits)) return std::nullopt;
  if (std::max(speeds->out, speeds->in) > kOneWay * speeds->difference) return std::nullopt;
  const double doubts = -speeds->difference / speeds->doubt;
  if (!(doubts > kLeastDoubts)) return std::nullopt;
  const auto slow = static_cast<double>(speeds->slower.size()), nodes = slow + speeds->faster;
  // One node is no kind of its own. A few slow nodes that are not alike are faults.
  const bool are_alike =
      speeds->slower.size() >= kFewSlow && slow >= kGroupShare * nodes && speeds->spread < -kAlike * margin_of(limits);
  const bool are_many = speeds->slower.size() > 1 && slow > kManySlow * nodes;
  // Two fast nodes are a link that is too fast.
  const bool are_fast_enough = speeds->faster >= kFewFast && speeds->faster >= kGroupShare * nodes;
  if (!(are_alike || are_many) || !are_fast_enough) return std::nullopt;
  return Split{.finding = {.what = Class::split,
                           .judgement = {.verdict = Verdict::undecided, .middle = speeds->difference},
                           .members = speeds->slower},
               .outliers = {outliers.begin(), outliers.end()},
               .is_sure = speeds->gap > kSureGap && doubts > kSureDoubts && speeds->difference < margin_of(limits)};
}

std::vector<Finding> outliers_of(const Split& split, const Matrix& relative, const Limits& limits) {
  std::vector<Finding> found;
  for (const int node : split.outliers) {
    std::vector<double> reached;
    for (int other = 0; other < relative.nodes(); ++other) {
      const bool is_of_other = !is_among(split.finding.members, other) && !is_among(split.outliers, other);
      if (is_of_other) reached.insert(reached.end(), {relative(node, other), relative(other, node)});
    }
    const double middle = median_of_numbers(reached);
    if (!(middle < split.finding.judgement.middle + margin_of(limits))) continue;
    found.push_back({.what = Class::nic,
                     .first = node,
                     .judgement = {.verdict = Verdict::undecided, .middle = middle},
                     .detail = "slower than both kinds of nodes"});
  }
  return found;
}

bool explains(const Split& split, std::vector<Finding>& culprits, const PairPlayer& player, const Limits& limits) {
  const auto is_slower_one = [&split](int node) { return is_among(split.finding.members, node); };
  const auto is_of_group = [&](const Finding& one) {
    // Older nodes are slow both ways.
    const bool is_one_way = one.what == Class::nic_out || one.what == Class::nic_in || one.what == Class::uplink_dir ||
                            one.what == Class::link_dir;
    if (is_one_way && one.judgement.verdict == Verdict::fail) return false;
    if (one.judgement.is_fast) return is_of_link(one) && !is_slower_one(one.first) && !is_slower_one(one.second);
    if (one.judgement.middle < split.finding.judgement.middle + margin_of(limits)) return false;
    if (is_of_leaf(one)) {
      return std::ranges::any_of(split.finding.members,
                                 [&](int node) { return player.leaves()[at(node)] == one.first; });
    }
    return is_slower_one(one.first) || (is_of_link(one) && is_slower_one(one.second));
  };
  const auto explained =
      std::partition(culprits.begin(), culprits.end(), [&](const Finding& one) { return !is_of_group(one); });
  const auto has_failed = [](const Finding& one) { return one.judgement.verdict == Verdict::fail; };
  if (std::none_of(explained, culprits.end(), has_failed)) return false;
  culprits.erase(explained, culprits.end());
  return true;
}

}  // namespace tutti::harness::accept
