// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/together.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>

#include "harness/accept/cells.h"
#include "harness/accept/verdict.h"
#include "harness/statistics/splitmix.h"
#include "harness/statistics/statistics.h"
#include "impl/types/status.h"

namespace tutti::harness::accept {
namespace {

constexpr std::uint64_t kSeedOfOrders = 0x6f7264657273;

}  // namespace

Together::Together(Crew& crew, const PairsPlan& plan, std::vector<int> nodes, Observer& observer)
    : crew_(crew), plan_(plan), nodes_(std::move(nodes)), observer_(observer), visits_(at(crew.nodes())) {
  TUTTI_ASSERT(nodes_.size() >= 3, "{} nodes together", nodes_.size());
}

void Together::run() {
  SplitMix random(plan_.seed ^ kSeedOfOrders);
  for (int visit = 0; visit < kVisits && failed_.empty(); ++visit) {
    if (visit > 0) crew_.pause();
    for (auto& of_node : visits_) of_node.emplace_back();
    for (int order = 0; order < kOrders && failed_.empty() && !observer_.is_stopped(); ++order) {
      random.shuffle(nodes_);
      observer_.on_round("together", ++rounds_, kVisits * kOrders);
      take(nodes_, crew_.play({nodes_}, {{.measure = Measure::together, .bytes = plan_.bytes}}).front().front());
    }
  }
}

void Together::take(const Group& group, const Outcome& outcome) {
  if (outcome.ending == Ending::measured && outcome.members.size() == group.size()) {
    std::vector<double> speeds = outcome.members;
    const double middle = median_of_numbers(speeds);
    for (std::size_t i = 0; i < group.size(); ++i) {
      const double off = outcome.members[i] - middle;
      if (!std::isnan(off)) visits_[at(group[i])].back().push_back(off);
    }
  } else if (outcome.ending != Ending::measured && outcome.ending != Ending::interrupted) {
    const Class what = outcome.ending == Ending::wrong ? Class::wrong : Class::hung;
    failed_.push_back({.what = what,
                       .judgement = {.verdict = Verdict::fail},
                       .tests = 1,
                       .members = group,
                       .detail = outcome.detail});
  }
}

void Together::add_to(Findings& findings) const {
  findings.parts.insert(findings.parts.begin(), failed_.begin(), failed_.end());
  add_slow(findings);
}

void Together::add_slow(Findings& findings) const {
  const auto is_known = [&findings](int node) {
    return std::ranges::any_of(findings.parts, [node](const Finding& one) { return is_about(one, node); });
  };
  // What a slow uplink costs its nodes is told with the uplink, and what a slow link costs its ends with the link.
  const auto has_excuse = [&](int node) {
    return std::ranges::any_of(findings.parts, [&](const Finding& one) {
      if (is_of_leaf(one)) return one.first == crew_.leaf_of(node);
      return one.what == Class::split || (is_of_link(one) && (one.first == node || one.second == node));
    });
  };
  std::map<int, std::vector<Finding>> by_leaf;
  std::map<int, int> members;
  for (const int node : nodes_) {
    const Judgement judgement = judge(visits_[at(node)], plan_.limits);
    ++members[crew_.leaf_of(node)];
    if (judgement.verdict != Verdict::fail || judgement.is_fast || has_excuse(node)) continue;
    by_leaf[crew_.leaf_of(node)].push_back({.what = Class::nic,
                                            .first = node,
                                            .judgement = judgement,
                                            .tests = kVisits * kOrders,
                                            .visits = kVisits,
                                            .detail = "when all nodes play at once"});
  }
  constexpr std::size_t kLeavesForUplinks = 3;
  constexpr double kMost = 0.75;  // of a leaf's nodes: then it is the leaf
  for (auto& [leaf, slow] : by_leaf) {
    const bool is_leaf = members.size() >= kLeavesForUplinks && slow.size() >= 2 &&
                         static_cast<double>(slow.size()) >= kMost * members.at(leaf);
    if (is_leaf) {
      std::vector<double> middles;
      for (const Finding& one : slow) middles.push_back(one.judgement.middle);
      Finding uplink = slow.front();
      uplink.what = Class::uplink;
      uplink.first = leaf;
      uplink.judgement.middle = median_of(middles);
      findings.parts.push_back(std::move(uplink));
      continue;
    }
    for (Finding& one : slow) {
      if (is_known(one.first)) continue;
      findings.nodes[at(one.first)].verdict = Verdict::fail;
      findings.parts.push_back(std::move(one));
    }
  }
}

}  // namespace tutti::harness::accept
