// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/groups.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

#include "harness/accept/schedule.h"
#include "harness/accept/verdict.h"
#include "harness/statistics/splitmix.h"
#include "harness/statistics/statistics.h"
#include "impl/types/status.h"

namespace tutti::harness::accept {
namespace {

constexpr std::uint64_t kSeedOfGroups = 0x67726f757073;
constexpr std::size_t kOperationsOfAMix = 500;
constexpr std::size_t kLeastToCompare = 3;  // groups of one size, so that their median is one of healthy nodes

/// Groups of `size` of `nodes`, in their order. The rest is a smaller one.
std::vector<Group> cut(const std::vector<int>& nodes, std::size_t size) {
  std::vector<Group> groups;
  for (std::size_t first = 0; first < nodes.size(); first += size) {
    const std::size_t end = std::min(first + size, nodes.size());
    groups.emplace_back(nodes.begin() + static_cast<std::ptrdiff_t>(first),
                        nodes.begin() + static_cast<std::ptrdiff_t>(end));
  }
  return groups;
}

bool is_single(const Group& group) { return group.size() < 2; }

}  // namespace

std::vector<int> group_sizes(int nodes) {
  std::vector<int> sizes;
  for (int size = 2; size < nodes; size *= 2) sizes.push_back(size);
  sizes.push_back(nodes);
  return sizes;
}

GroupsStage::GroupsStage(Crew& crew, const PairsPlan& plan, std::vector<int> nodes, Observer& observer)
    : crew_(crew), plan_(plan), nodes_(std::move(nodes)), observer_(observer), visits_(at(crew.nodes())) {
  TUTTI_ASSERT(nodes_.size() >= 2, "{} nodes in groups", nodes_.size());
}

std::vector<Test> usual_group_tests(std::size_t bytes) {
  constexpr std::size_t kShort = 8, kLarge = 16;
  return {{.measure = Measure::all_reduce, .bytes = kShort},
          {.measure = Measure::all_reduce, .bytes = bytes},
          {.measure = Measure::all_reduce, .bytes = kLarge * bytes},
          {.measure = Measure::all_to_all, .bytes = std::max(bytes / kLarge, kShort)}};
}

void GroupsStage::run(const std::vector<Test>& tests) {
  std::size_t largest = 0;
  for (const Test& test : tests) {
    if (test.measure == Measure::all_reduce) largest = std::max(largest, test.bytes);
  }
  least_bytes_ = std::min(plan_.bytes, largest);
  const std::vector<int> sizes = group_sizes(static_cast<int>(nodes_.size()));
  std::map<int, Group> by_leaf;
  for (const int node : nodes_) by_leaf[crew_.leaf_of(node)].push_back(node);
  std::vector<Group> leaves;
  for (const auto& [leaf, group] : by_leaf) {
    if (group.size() >= 2) leaves.push_back(group);
  }
  const bool has_leaves = by_leaf.size() >= 2 && !leaves.empty();
  const int planned = static_cast<int>(std::ssize(sizes) * kVisits * kOrders) + (has_leaves ? 1 : 0);
  int done = 0;
  const auto goes_on = [&] { return failed_.empty() && !observer_.is_stopped(); };
  SplitMix random(plan_.seed ^ kSeedOfGroups);
  for (int visit = 0; visit < kVisits && goes_on(); ++visit) {
    if (visit > 0) crew_.pause();
    for (auto& of_node : visits_) of_node.emplace_back();
    if (visit == 0 && has_leaves) {
      observer_.on_round("groups", ++done, planned);
      play_round(leaves, tests);
    }
    for (const int size : sizes) {
      for (int order = 0; order < kOrders && goes_on(); ++order) {
        observer_.on_round("groups", ++done, planned);
        random.shuffle(nodes_);
        std::vector<Group> groups = cut(nodes_, at(size));
        std::erase_if(groups, is_single);
        play_round(groups, tests);
      }
    }
  }
}

void GroupsStage::soak(double seconds) {
  double spent = 0;
  for (int round = 1; failed_.empty() && !observer_.is_stopped() && (spent < seconds || round == 1); ++round) {
    const Test test{.measure = Measure::soak, .bytes = kOperationsOfAMix};
    const double rounds = spent > 0 ? std::ceil(seconds / (spent / (round - 1))) : 0;
    observer_.on_round("soak", round, static_cast<int>(rounds));
    const Outcomes outcomes = crew_.play({nodes_}, {test});
    const Outcome& outcome = outcomes.front().front();
    if (take_failures({nodes_}, {test}, outcomes) || outcome.ending != Ending::measured) return;
    soaked_operations_ += static_cast<long long>(kOperationsOfAMix);
    spent += std::max(outcome.seconds, 1e-3);
  }
}

void GroupsStage::train() {
  constexpr int kTrainings = 3;
  constexpr std::size_t kImagesPerRank = 256;
  const Test test{.measure = Measure::training, .bytes = kImagesPerRank};
  std::vector<double> speeds;
  for (int round = 1; round <= kTrainings && !observer_.is_stopped(); ++round) {
    observer_.on_round("job", round, kTrainings);
    const Outcomes outcomes = crew_.play({nodes_}, {test});
    const Outcome& outcome = outcomes.front().front();
    if (take_failures({nodes_}, {test}, outcomes) || outcome.ending != Ending::measured) return;
    speeds.push_back(std::exp(outcome.log_speed));
  }
  if (!speeds.empty()) steps_per_second_ = median_of(speeds);
}

void GroupsStage::run_command() {
  observer_.on_round("job", 1, 1);
  const Test test{.measure = Measure::command};
  const Outcomes outcomes = crew_.play({nodes_}, {test});
  const Outcome& outcome = outcomes.front().front();
  if (is_failure(outcome)) {
    failed_.push_back(finding_of_group(nodes_, outcome, 1));
    failed_.back().what = Class::job;
  }
  if (outcome.ending == Ending::measured) command_seconds_ = std::exp(-outcome.log_speed);
}

void GroupsStage::play_round(const std::vector<Group>& groups, const std::vector<Test>& tests) {
  const Outcomes outcomes = crew_.play(groups, tests);
  if (!take_failures(groups, tests, outcomes)) take_speeds(groups, tests, outcomes);
}

bool GroupsStage::take_failures(const std::vector<Group>& groups, const std::vector<Test>& tests,
                                const Outcomes& outcomes) {
  bool has_failed = false;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto first = std::ranges::find_if(outcomes[i], is_failure);
    if (first == outcomes[i].end()) continue;
    has_failed = true;
    failed_.push_back(narrowed(groups[i], tests[static_cast<std::size_t>(first - outcomes[i].begin())], *first));
  }
  return has_failed;
}

Finding GroupsStage::narrowed(Group group, const Test& test, Outcome outcome) {
  constexpr int kMostPlays = 40;
  int plays = 1;
  const auto try_all = [&](const std::vector<Group>& candidates, bool are_disjoint) {
    std::vector<std::vector<Group>> at_once;
    if (are_disjoint) at_once.push_back(candidates);
    if (!are_disjoint) {
      for (const Group& one : candidates) at_once.push_back({one});
    }
    for (const std::vector<Group>& groups : at_once) {
      if (groups.empty() || observer_.is_stopped() || plays >= kMostPlays) continue;
      ++plays;
      const Outcomes outcomes = crew_.play(groups, {test});
      const auto failed =
          std::ranges::find_if(outcomes, [](const auto& of_group) { return is_failure(of_group.front()); });
      if (failed == outcomes.end()) continue;
      group = groups[static_cast<std::size_t>(failed - outcomes.begin())];
      outcome = failed->front();
      return true;
    }
    return false;
  };
  std::size_t parts = 2;
  while (group.size() > 2) {
    std::vector<Group> pieces = cut(group, (group.size() + parts - 1) / parts);
    std::vector<Group> rests;
    for (const Group& piece : pieces) {
      Group rest;
      std::ranges::copy_if(group, std::back_inserter(rest), [&](int node) { return !std::ranges::count(piece, node); });
      if (!is_single(rest)) rests.push_back(std::move(rest));
    }
    std::erase_if(pieces, is_single);
    if (try_all(pieces, true)) {
      parts = 2;
    } else if (try_all(rests, false)) {
      parts = std::max<std::size_t>(parts - 1, 2);
    } else if (parts < group.size() && plays < kMostPlays && !observer_.is_stopped()) {
      parts = std::min(2 * parts, group.size());
    } else {
      break;
    }
  }
  return finding_of_group(std::move(group), outcome, plays);
}

void GroupsStage::take_speeds(const std::vector<Group>& groups, const std::vector<Test>& tests,
                              const Outcomes& outcomes) {
  for (std::size_t j = 0; j < tests.size(); ++j) {
    std::map<std::size_t, std::vector<double>> by_size;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const Outcome& outcome = outcomes[i][j];
      if (outcome.ending == Ending::measured) by_size[groups[i].size()].push_back(outcome.log_speed);
    }
    for (const auto& row : by_size) {
      const std::size_t size = row.first;
      const std::vector<double>& speeds = row.second;
      if (size != std::ranges::max(groups, {}, &Group::size).size()) continue;  // a rest has a size by chance
      const auto is_same = [&](const SizeFigures& one) { return at(one.nodes) == size && one.test == tests[j]; };
      auto figures = std::ranges::find_if(figures_, is_same);
      if (figures == figures_.end()) {
        figures_.push_back({.nodes = static_cast<int>(size), .test = tests[j]});
        speeds_.emplace_back();
        figures = figures_.end() - 1;
      }
      std::vector<double>& all = speeds_[static_cast<std::size_t>(figures - figures_.begin())];
      all.insert(all.end(), speeds.begin(), speeds.end());
      figures->groups = static_cast<int>(all.size());
      figures->log_speed = median_of(all);
    }
    // Short messages say nothing of bandwidth, and their times are of the order of the noise.
    if (tests[j].bytes < least_bytes_ || tests[j].measure != Measure::all_reduce) continue;
    // Groups of one leaf are compared with such, and those of several with such.
    const auto spans_leaves = [this](const Group& group) {
      return std::ranges::any_of(group, [&](int node) { return crew_.leaf_of(node) != crew_.leaf_of(group.front()); });
    };
    std::map<std::pair<std::size_t, bool>, std::vector<double>> alike;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const Outcome& outcome = outcomes[i][j];
      if (outcome.ending != Ending::measured) continue;
      alike[{groups[i].size(), spans_leaves(groups[i])}].push_back(outcome.log_speed);
    }
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const Outcome& outcome = outcomes[i][j];
      const std::vector<double>& speeds = alike[{groups[i].size(), spans_leaves(groups[i])}];
      if (outcome.ending != Ending::measured || speeds.size() < kLeastToCompare) continue;
      const double off = outcome.log_speed - median_of(speeds);
      for (const int node : groups[i]) visits_[at(node)].back().push_back(off);
    }
  }
}

std::vector<SizeFigures> GroupsStage::figures() const {
  std::vector<SizeFigures> all = figures_;
  std::ranges::stable_sort(all, {}, &SizeFigures::nodes);
  return all;
}

void GroupsStage::add_to(Findings& findings) const {
  findings.parts.insert(findings.parts.begin(), failed_.begin(), failed_.end());
  for (const int node : nodes_) {
    const Judgement judgement = judge(visits_[at(node)], plan_.limits);
    const bool is_known = std::ranges::any_of(findings.parts, [&](const Finding& one) {
      return is_about(one, node) || excuses(one, node, crew_.leaf_of(node));
    });
    if (judgement.verdict != Verdict::fail || judgement.is_fast || is_known) continue;
    findings.nodes[at(node)].verdict = Verdict::fail;
    findings.parts.push_back({.what = Class::nic,
                              .first = node,
                              .judgement = judgement,
                              .tests = kVisits * kOrders,
                              .visits = kVisits,
                              .detail = "in groups"});
  }
}

}  // namespace tutti::harness::accept
