// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/rings.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "harness/accept/cells.h"
#include "harness/accept/verdict.h"
#include "harness/statistics/splitmix.h"
#include "harness/statistics/statistics.h"
#include "impl/types/status.h"

namespace tutti::harness::accept {
namespace {

constexpr std::uint64_t kSeedOfShifts = 0x736869667473;
constexpr std::uint64_t kSeedOfRings = 0x6f7264657273;
constexpr int kVisits = 2;
constexpr int kRoundsOfAVisit = 8;  ///< at least
constexpr std::size_t kMostDistances = 63;

}  // namespace

RingVisits visits_of_shifts(const std::vector<int>& nodes, std::uint64_t seed) {
  const auto count = static_cast<int>(nodes.size());
  TUTTI_ASSERT(count >= 3, "{} nodes in shifts", count);
  std::vector<int> distances;
  for (int distance = 1; distance < count; ++distance) distances.push_back(distance);
  SplitMix random(seed ^ kSeedOfShifts);
  random.shuffle(distances);
  if (distances.size() > kMostDistances) distances.resize(kMostDistances);
  // If they are few, each visit has all of them, several times.
  const bool are_many = distances.size() >= std::size_t{kVisits} * kRoundsOfAVisit;
  const std::size_t rounds = are_many ? distances.size() : std::size_t{kVisits} * kRoundsOfAVisit;
  RingVisits visits(kVisits);
  for (std::size_t round = 0; round < rounds; ++round) {
    const std::size_t index = are_many ? round : round / kVisits;
    visits[round % kVisits].push_back(shift_rings(nodes, distances[index % distances.size()]));
  }
  return visits;
}

RingVisits visits_of_rings(std::vector<int> nodes, std::uint64_t seed) {
  TUTTI_ASSERT(nodes.size() >= 3, "{} nodes in a ring", nodes.size());
  SplitMix random(seed ^ kSeedOfRings);
  RingVisits visits(kVisits);
  for (auto& visit : visits) {
    for (int order = 0; order < kRoundsOfAVisit; ++order) {
      random.shuffle(nodes);
      visit.push_back({nodes});
    }
  }
  return visits;
}

Rings::Rings(Crew& crew, const PairsPlan& plan, std::string stage, Observer& observer)
    : crew_(crew), plan_(plan), stage_(std::move(stage)), observer_(observer), visits_(at(crew.nodes())) {}

void Rings::run(const RingVisits& visits) {
  int planned = 0, done = 0;
  for (const auto& visit : visits) planned += static_cast<int>(visit.size());
  for (std::size_t visit = 0; visit < visits.size() && failed_.empty() && !observer_.is_stopped(); ++visit) {
    if (visit > 0) crew_.pause();
    for (auto& of_node : visits_) of_node.emplace_back();
    for (const std::vector<Group>& rings : visits[visit]) {
      if (!failed_.empty() || observer_.is_stopped()) return;
      observer_.on_round(stage_, ++done, planned);
      take(rings, crew_.play(rings, {{.measure = Measure::ring, .bytes = plan_.bytes}}));
    }
  }
}

/// A difference is to the median of the nodes in the round that send and receive as it does: within the leaf, or over
/// uplinks. Of fewer than three such nodes no median says anything.
void Rings::take(const std::vector<Group>& rings, const std::vector<std::vector<Outcome>>& outcomes) {
  constexpr std::size_t kLeastAlike = 3;
  struct Member {
    int node;
    double speed;
  };
  std::vector<Member> near, far;
  for (std::size_t i = 0; i < rings.size(); ++i) {
    const Outcome& outcome = outcomes[i].front();
    if (outcome.ending == Ending::measured && outcome.members.size() == rings[i].size()) {
      const std::size_t count = rings[i].size();
      for (std::size_t j = 0; j < count; ++j) {
        const int leaf = crew_.leaf_of(rings[i][j]);
        const bool is_near = crew_.leaf_of(rings[i][(j + 1) % count]) == leaf &&
                             crew_.leaf_of(rings[i][(j + count - 1) % count]) == leaf;
        if (!std::isnan(outcome.members[j])) (is_near ? near : far).push_back({rings[i][j], outcome.members[j]});
      }
    } else if (is_failure(outcome)) {
      failed_.push_back(finding_of_group(rings[i], outcome, 1));
    }
  }
  for (const std::vector<Member>& alike : {near, far}) {
    if (alike.size() < kLeastAlike) continue;
    std::vector<double> speeds;
    for (const Member& one : alike) speeds.push_back(one.speed);
    const double middle = median_of_numbers(speeds);
    for (const Member& one : alike) visits_[at(one.node)].back().push_back(one.speed - middle);
  }
}

void Rings::add_to(Findings& findings) const {
  findings.parts.insert(findings.parts.begin(), failed_.begin(), failed_.end());
  add_slow(findings);
}

void Rings::add_slow(Findings& findings) const {
  const auto is_known = [&findings](int node) {
    return std::ranges::any_of(findings.parts, [node](const Finding& one) { return is_about(one, node); });
  };
  const auto has_excuse = [&](int node) {
    return std::ranges::any_of(findings.parts,
                               [&](const Finding& one) { return excuses(one, node, crew_.leaf_of(node)); });
  };
  std::map<int, std::vector<Finding>> by_leaf;
  std::map<int, int> members;
  for (int node = 0; node < crew_.nodes(); ++node) {
    const std::vector<std::vector<double>>& visits = visits_[at(node)];
    const int tests = std::transform_reduce(visits.begin(), visits.end(), 0, std::plus<>(),
                                            [](const auto& visit) { return static_cast<int>(visit.size()); });
    if (tests == 0) continue;
    const Judgement judgement = judge(visits, plan_.limits);
    ++members[crew_.leaf_of(node)];
    if (judgement.verdict != Verdict::fail || judgement.is_fast || has_excuse(node)) continue;
    by_leaf[crew_.leaf_of(node)].push_back({.what = Class::nic,
                                            .first = node,
                                            .judgement = judgement,
                                            .tests = tests,
                                            .visits = kVisits,
                                            .detail = "when all nodes send at once"});
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
