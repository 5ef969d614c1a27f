// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/acceptance.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "harness/accept/schedule.h"
#include "harness/accept/together.h"
#include "harness/statistics/statistics.h"

namespace tutti::harness::accept {
namespace {

constexpr int kVisits = 2;  // of a node alone, apart in time: before the pairs and after them
constexpr int kRepeats = 8;

bool has(const AcceptPlan& plan, std::string_view stage) {
  return std::ranges::find(plan.stages, stage) != plan.stages.end();
}

/// The stage in which each node plays by itself.
class Alone {
 public:
  Alone(Crew& crew, const AcceptPlan& plan, Observer& observer) : crew_(crew), plan_(plan), observer_(observer) {
    visits_.resize(at(crew.nodes()));
    for (int node = 0; node < crew.nodes(); ++node) {
      const bool is_skipped = std::ranges::find(plan.pairs.skipped, node) != plan.pairs.skipped.end();
      if (crew.absence_of(node).empty() && !is_skipped) there_.push_back(node);
    }
  }

  /// Several rounds in which all nodes play at once. A difference is to the median of the others in the round.
  void visit() {
    for (auto& visits : visits_) visits.emplace_back();
    for (int repeat = 0; repeat < kRepeats && !observer_.is_stopped(); ++repeat) {
      observer_.on_round("alone", ++rounds_, kVisits * kRepeats);
      std::vector<Group> groups;
      for (const int node : there_) {
        if (!lost_.contains(node)) groups.push_back({node});
      }
      if (groups.empty()) return;
      take(groups, crew_.play(groups, {{.measure = Measure::alone, .bytes = plan_.alone_bytes}}));
    }
  }

  /// Nodes that must not play on: they did not answer, hung or computed wrongly.
  [[nodiscard]] std::vector<int> lost() const {
    std::vector<int> nodes;
    for (const auto& [node, finding] : lost_) nodes.push_back(node);
    return nodes;
  }

  /// Adds what this stage found to what the pairs say.
  void add_to(Findings& findings) const {
    findings.nodes.resize(visits_.size());
    for (const auto& [node, finding] : lost_) {
      findings.nodes[at(node)].verdict = Verdict::fail;
      findings.parts.insert(findings.parts.begin(), finding);
    }
    std::map<int, Judgement> slow;
    for (const int node : there_) {
      const Judgement judgement = judge(visits_[at(node)], plan_.pairs.limits);
      if (judgement.verdict == Verdict::untested || lost_.contains(node)) continue;
      findings.nodes[at(node)].alone = judgement.middle;
      if (judgement.verdict == Verdict::fail && !judgement.is_fast) slow[node] = judgement;
    }
    const bool is_split =
        std::ranges::any_of(findings.parts, [](const Finding& one) { return one.what == Class::split; });
    if (!is_split && !are_a_kind(slow)) {
      for (const auto& [node, judgement] : slow) add_slow(findings, node, judgement);
    } else if (!is_split) {
      add_split(findings, slow);
    }
  }

 private:
  void take(const std::vector<Group>& groups, const std::vector<std::vector<Outcome>>& outcomes) {
    std::vector<double> speeds;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const Outcome& outcome = outcomes[i].front();
      if (outcome.ending == Ending::measured) speeds.push_back(outcome.log_speed);
      if (outcome.ending == Ending::measured || outcome.ending == Ending::interrupted) continue;
      const int node = groups[i].front();
      lost_[node] = {.what = outcome.ending == Ending::wrong ? Class::wrong : Class::dead,
                     .first = node,
                     .second = outcome.ending == Ending::wrong ? node : -1,
                     .judgement = {.verdict = Verdict::fail},
                     .tests = 1,
                     .detail = outcome.detail};
    }
    if (speeds.size() < 2) return;
    const double middle = median_of(speeds);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const Outcome& outcome = outcomes[i].front();
      if (outcome.ending != Ending::measured) continue;
      visits_[at(groups[i].front())].back().push_back(outcome.log_speed - middle);
    }
  }

  /// The pairs may have found the node already: that it is slow alone too makes its NIC's fault one of the node.
  static void add_slow(Findings& findings, int node, const Judgement& judgement) {
    findings.nodes[at(node)].verdict = Verdict::fail;
    for (Finding& finding : findings.parts) {
      if (!is_about(finding, node) || finding.judgement.verdict != Verdict::fail) continue;
      if (finding.what == Class::nic) finding.what = Class::node;
      if (finding.what == Class::node || finding.what == Class::dead) return;
    }
    findings.parts.push_back({.what = Class::node, .first = node, .judgement = judgement, .visits = kVisits});
  }

  /// Whether they are so many that nobody can say which nodes are right. Faults differ, and are few.
  [[nodiscard]] bool are_a_kind(const std::map<int, Judgement>& slow) const {
    constexpr double kMany = 0.3;  // of the nodes
    return slow.size() >= 2 && static_cast<double>(slow.size()) > kMany * static_cast<double>(there_.size());
  }

  static void add_split(Findings& findings, const std::map<int, Judgement>& slow) {
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

  Crew& crew_;
  const AcceptPlan& plan_;
  Observer& observer_;
  std::vector<int> there_;
  std::vector<std::vector<std::vector<double>>> visits_;  ///< [node][visit]
  std::map<int, Finding> lost_;
  int rounds_ = 0;
};

/// A round of all nodes ends if two of them do not work with each other. So no node plays that failed in more than
/// speed.
std::vector<int> nodes_for_together(const Crew& crew, const std::vector<int>& skipped, const Findings& findings) {
  std::vector<int> nodes;
  for (int node = 0; node < crew.nodes(); ++node) {
    const bool is_skipped = std::ranges::find(skipped, node) != skipped.end();
    const bool is_broken = std::ranges::any_of(findings.parts, [node](const Finding& one) {
      const bool is_grave = one.what == Class::wrong || one.what == Class::dead || one.what == Class::hung ||
                            (one.what == Class::either && one.judgement.middle == 0);
      return is_grave && (one.first == node || one.second == node);
    });
    if (!is_skipped && !is_broken && crew.absence_of(node).empty()) nodes.push_back(node);
  }
  return nodes;
}

}  // namespace

const std::vector<std::string>& all_stages() {
  static const std::vector<std::string> stages{"inventory", "alone", "pairs", "together"};
  return stages;
}

AcceptReport accept_cluster(Crew& crew, const AcceptPlan& plan, Observer& observer) {
  using Clock = std::chrono::steady_clock;
  AcceptReport report;
  report.limits = plan.pairs.limits;
  int there = 0;
  for (int node = 0; node < crew.nodes(); ++node) {
    report.names.push_back(crew.name_of(node));
    report.leaves.push_back(crew.leaf_of(node));
    report.absences.push_back(crew.absence_of(node));
    there += report.absences.back().empty();
  }
  PairsPlan pairs = plan.pairs;
  std::optional<Alone> alone;
  const auto timed = [](StageReport& stage, auto&& play) {
    const auto begin = Clock::now();
    play();
    stage.seconds += std::chrono::duration<double>(Clock::now() - begin).count();
  };
  report.stages.push_back({.name = "inventory"});
  StageReport of_alone{.name = "alone"};
  if (has(plan, "alone")) {
    alone.emplace(crew, plan, observer);
    timed(of_alone, [&] { alone->visit(); });
    for (const int node : alone->lost()) pairs.skipped.push_back(node);
  } else {
    of_alone.left_out = "--stages does not name it";
  }
  StageReport of_pairs{.name = "pairs"};
  const auto playing = there - std::ssize(pairs.skipped);
  if (!has(plan, "pairs")) {
    of_pairs.left_out = "--stages does not name it";
  } else if (playing < 2) {
    of_pairs.left_out = "it needs two nodes";
  } else if (!observer.is_stopped()) {
    timed(of_pairs, [&] { report.findings = examine_pairs(crew, pairs, observer); });
  }
  report.findings.nodes.resize(report.names.size());
  StageReport of_together{.name = "together"};
  if (has(plan, "together")) {
    const std::vector<int> nodes = nodes_for_together(crew, pairs.skipped, report.findings);
    constexpr std::size_t kLeast = 3;
    if (nodes.size() < kLeast) {
      of_together.left_out = "it needs three nodes that work with each other";
    } else if (!observer.is_stopped()) {
      Together together(crew, plan.pairs, nodes, observer);
      timed(of_together, [&] { together.run(); });
      together.add_to(report.findings);
    }
  } else {
    of_together.left_out = "--stages does not name it";
  }
  if (alone) {
    timed(of_alone, [&] { alone->visit(); });
    alone->add_to(report.findings);
  }
  report.findings.is_interrupted |= observer.is_stopped();
  report.stages.push_back(std::move(of_alone));
  report.stages.push_back(std::move(of_pairs));
  report.stages.push_back(std::move(of_together));
  return report;
}

Rounds rounds_of(const AcceptPlan& plan, int nodes) {
  Rounds rounds;
  if (has(plan, "alone")) rounds.alone = kVisits * kRepeats;
  if (has(plan, "together") && nodes >= 3) rounds.together = Together::kVisits * Together::kOrders;
  if (has(plan, "pairs") && nodes >= 2) {
    const PairsForecast forecast = pairs_forecast(nodes, plan.pairs);
    rounds.pairs = forecast.rounds;
    rounds.repeats = forecast.repeats;
  }
  return rounds;
}

}  // namespace tutti::harness::accept
