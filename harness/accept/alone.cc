// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/alone.h"

#include <algorithm>
#include <utility>

#include "harness/accept/schedule.h"
#include "harness/accept/verdict.h"
#include "harness/statistics/statistics.h"

namespace tutti::harness::accept {
namespace {

/// The pairs may have found the node already: that it is slow alone too makes its NIC's fault one of the node.
void add_slow(Findings& findings, int node, const Judgement& judgement) {
  findings.nodes[at(node)].verdict = Verdict::fail;
  for (Finding& finding : findings.parts) {
    const bool is_its = is_about(finding, node) && finding.rail == kNoRail;
    if (!is_its || finding.judgement.verdict != Verdict::fail) continue;
    if (finding.what == Class::nic) finding.what = Class::node;
    if (finding.what == Class::node || finding.what == Class::dead) return;
  }
  findings.parts.push_back({.what = Class::node, .first = node, .judgement = judgement, .visits = Alone::kVisits});
}

void add_split(Findings& findings, const std::map<int, Judgement>& slow) {
  Finding split{.what = Class::split, .judgement = {.verdict = Verdict::undecided}, .detail = "alone"};
  std::vector<double> middles;
  for (const auto& [node, judgement] : slow) {
    split.members.push_back(node);
    middles.push_back(judgement.middle);
  }
  split.judgement.middle = median_of(middles);
  findings.parts.push_back(std::move(split));
  for (NodeFigures& figures : findings.nodes) {
    if (figures.verdict == Verdict::pass) figures.verdict = Verdict::undecided;
  }
}

}  // namespace

Alone::Alone(Crew& crew, const PairsPlan& plan, std::vector<std::size_t> sizes, Observer& observer)
    : crew_(crew), plan_(plan), observer_(observer), visits_(at(crew.nodes())) {
  std::ranges::sort(sizes);
  for (const std::size_t bytes : sizes) tests_.push_back({.measure = Measure::alone, .bytes = bytes});
  for (int node = 0; node < crew.nodes(); ++node) {
    const bool is_skipped = std::ranges::find(plan.skipped, node) != plan.skipped.end();
    if (crew.absence_of(node).empty() && !is_skipped) there_.push_back(node);
  }
}

void Alone::visit() {
  for (auto& visits : visits_) visits.emplace_back();
  for (int repeat = 0; repeat < kRepeats && !observer_.is_stopped(); ++repeat) {
    observer_.on_round("alone", ++rounds_, kVisits * kRepeats);
    std::vector<Group> groups;
    for (const int node : there_) {
      if (!lost_.contains(node)) groups.push_back({node});
    }
    if (groups.empty()) return;
    take(groups, play(groups));
  }
}

std::vector<Outcome> Alone::play_once(const std::vector<Group>& groups) {
  std::vector<Outcome> outcomes;
  for (const std::vector<Outcome>& of_group : crew_.play(groups, tests_)) {
    const auto failed = std::ranges::find_if(of_group, is_failure);
    outcomes.push_back(failed == of_group.end() ? of_group.back() : *failed);
  }
  return outcomes;
}

std::vector<Outcome> Alone::play(const std::vector<Group>& groups) {
  std::vector<Outcome> outcomes = play_once(groups);
  std::vector<Group> failed;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    // Wrong data are never by chance.
    if (!is_failure(outcomes[i]) || outcomes[i].ending == Ending::wrong) continue;
    failed.push_back(groups[i]);
    places.push_back(i);
  }
  if (failed.empty()) return outcomes;
  // Once may be chance. If there is no time for a second one, the first says nothing.
  if (observer_.is_stopped()) {
    for (const std::size_t place : places) outcomes[place] = {.ending = Ending::interrupted};
    return outcomes;
  }
  auto again = play_once(failed);
  for (std::size_t i = 0; i < failed.size(); ++i) outcomes[places[i]] = std::move(again[i]);
  return outcomes;
}

std::vector<int> Alone::lost() const {
  std::vector<int> nodes;
  for (const auto& [node, finding] : lost_) nodes.push_back(node);
  return nodes;
}

std::vector<int> Alone::dead() const {
  std::vector<int> nodes;
  for (const auto& [node, finding] : lost_) {
    if (finding.what == Class::dead) nodes.push_back(node);
  }
  return nodes;
}

void Alone::add_to(Findings& findings) const {
  findings.nodes.resize(visits_.size());
  for (const auto& [node, finding] : lost_) {
    const bool is_acquitted = acquitted_ && std::ranges::count(acquitted_->members, node) > 0;
    findings.nodes[at(node)].verdict = is_acquitted ? Verdict::skipped : Verdict::fail;
    if (!is_acquitted) findings.parts.insert(findings.parts.begin(), finding);
  }
  if (acquitted_) findings.parts.push_back(*acquitted_);
  std::map<int, Judgement> slow;
  for (const int node : there_) {
    const Judgement judgement = judge(visits_[at(node)], plan_.limits);
    if (judgement.verdict == Verdict::untested || lost_.contains(node)) continue;
    findings.nodes[at(node)].alone = judgement.middle;
    if (judgement.verdict == Verdict::fail && !judgement.is_fast) slow[node] = judgement;
  }
  const bool is_split =
      std::ranges::any_of(findings.parts, [](const Finding& one) { return one.what == Class::split; });
  if (is_split || slow.empty()) return;
  const bool are_known = std::ranges::all_of(
      slow, [&findings](const auto& one) { return findings.nodes[at(one.first)].verdict == Verdict::fail; });
  const bool are_two = there_.size() == 2;  // which of them is right?
  if (!are_known && (are_two || are_a_kind(slow))) return add_split(findings, slow);
  for (const auto& [node, judgement] : slow) add_slow(findings, node, judgement);
}

void Alone::take(const std::vector<Group>& groups, const std::vector<Outcome>& outcomes) {
  std::vector<double> speeds;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Outcome& outcome = outcomes[i];
    if (outcome.ending == Ending::measured) speeds.push_back(outcome.log_speed);
    if (!is_failure(outcome)) continue;
    const int node = groups[i].front();
    lost_[node] = {.what = outcome.ending == Ending::wrong ? Class::wrong : Class::dead,
                   .first = node,
                   .second = outcome.ending == Ending::wrong ? node : -1,
                   .judgement = {.verdict = Verdict::fail},
                   .tests = outcome.ending == Ending::wrong ? 1 : 2,
                   .detail = outcome.detail};
  }
  if (speeds.size() < 2) return;
  const double middle = median_of(speeds);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Outcome& outcome = outcomes[i];
    if (outcome.ending != Ending::measured) continue;
    const double off = outcome.log_speed - middle;
    visits_[at(groups[i].front())].back().push_back(speeds.size() == 2 ? 2 * off : off);  // of two: from the other
  }
}

bool Alone::are_a_kind(const std::map<int, Judgement>& slow) const {
  constexpr double kMany = 0.3;  // of the nodes
  return slow.size() >= 2 && static_cast<double>(slow.size()) > kMany * static_cast<double>(there_.size());
}

}  // namespace tutti::harness::accept
