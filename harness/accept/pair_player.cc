// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/pair_player.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace tutti::harness::accept {
namespace {

constexpr std::size_t kThirds = 2;

}  // namespace

PairPlayer::PairPlayer(Crew& crew, const PairsPlan& plan, std::function<bool()> is_stopped)
    : crew_(crew), plan_(plan), is_stopped_(std::move(is_stopped)) {
  for (int node = 0; node < crew.nodes(); ++node) {
    leaves_.push_back(crew.leaf_of(node));
    const bool is_skipped = std::ranges::find(plan.skipped, node) != plan.skipped.end();
    if (!is_skipped && crew.absence_of(node).empty()) nodes_.push_back(node);
  }
}

bool PairPlayer::is_lost(int one, int other) const {
  return is_lost(one) || is_lost(other) || lost_pairs_.contains(std::minmax(one, other));
}

std::vector<std::vector<Outcome>> PairPlayer::play_groups(const Round& pairs, const std::vector<Test>& tests) {
  std::vector<Group> groups;
  for (const Transfer& pair : pairs) groups.push_back({pair.sender, pair.receiver});
  ++plays_;
  return crew_.play(groups, tests);
}

std::vector<std::vector<double>> PairPlayer::play(const Round& pairs, const std::vector<Test>& tests) {
  std::vector<std::vector<double>> speeds(pairs.size(), std::vector<double>(tests.size(), kNothing));
  Round playing;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (is_lost(pairs[i].sender, pairs[i].receiver)) continue;
    playing.push_back(pairs[i]);
    places.push_back(i);
  }
  if (playing.empty() || is_stopped_()) return speeds;
  const auto outcomes = play_groups(playing, tests);
  bool has_new_failure = false;
  for (std::size_t i = 0; i < playing.size(); ++i) {
    for (std::size_t j = 0; j < tests.size(); ++j) {
      const Outcome& outcome = outcomes[i][j];
      if (outcome.ending == Ending::measured) {
        speeds[places[i]][j] = outcome.log_speed;
      } else if (outcome.ending != Ending::interrupted) {
        take_failure(playing[i], tests[j], outcome);
        has_new_failure |= outcome.ending != Ending::wrong;
      }
    }
  }
  for (std::size_t i = 0; i < playing.size();
       ++i) {  // what came before a failure is of a pair that is not to be judged
    if (is_lost(playing[i].sender, playing[i].receiver)) speeds[places[i]].assign(tests.size(), kNothing);
  }
  if (has_new_failure) try_with_thirds();
  return speeds;
}

std::vector<std::vector<double>> PairPlayer::play_both_ways(const Round& pairs) {
  return play(
      pairs, {{.measure = Measure::bandwidth, .bytes = plan_.bytes}, {.measure = Measure::back, .bytes = plan_.bytes}});
}

std::vector<double> PairPlayer::play_alone(const std::vector<int>& nodes, std::size_t bytes) {
  std::vector<double> speeds(nodes.size(), kNothing);
  if (nodes.empty() || is_stopped_()) return speeds;
  std::vector<Group> groups;
  for (const int node : nodes) groups.push_back({node});
  ++plays_;
  const auto outcomes = crew_.play(groups, {{.measure = Measure::alone, .bytes = bytes}});
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (outcomes[i].front().ending == Ending::measured) speeds[i] = outcomes[i].front().log_speed;
  }
  return speeds;
}

void PairPlayer::take_failure(const Transfer& pair, const Test& test, const Outcome& outcome) {
  lost_pairs_.insert(std::minmax(pair.sender, pair.receiver));
  if (outcome.ending == Ending::wrong) {
    const bool is_back = test.measure == Measure::back;
    wrong_.try_emplace(is_back ? Pair(pair.receiver, pair.sender) : Pair(pair.sender, pair.receiver), outcome.detail);
    return;
  }
  failed_with_[pair.sender].insert(pair.receiver);
  failed_with_[pair.receiver].insert(pair.sender);
  details_[pair.sender] = details_[pair.receiver] = outcome.detail;
}

void PairPlayer::try_with_thirds() {
  const auto good = [this] {
    std::vector<int> nodes;
    for (const int node : nodes_) {
      if (!has_failed(node) && !is_lost(node)) nodes.push_back(node);
      if (nodes.size() == kThirds) break;
    }
    return nodes;
  }();
  std::vector<int> suspects;
  for (const auto& [node, partners] : failed_with_) {
    if (!is_lost(node) && partners.size() == 1 && !thirds_.contains(node)) suspects.push_back(node);
  }
  for (const int node : suspects) {
    thirds_[node] = {};
    for (const int third : good) {
      if (is_stopped_() || is_lost(node, third)) continue;
      thirds_[node].push_back(third);
      const Test test{.measure = Measure::bandwidth, .bytes = plan_.bytes};
      const Transfer pair{.sender = node, .receiver = third};
      const Outcome outcome = play_groups({pair}, {test}).front().front();
      if (is_failure(outcome)) take_failure(pair, test, outcome);
    }
  }
  // A node is dead if it failed with two others that fail with it alone.
  for (const auto& [node, partners] : failed_with_) {
    const auto innocent = std::ranges::count_if(partners, [this](int partner) {
      const auto of_partner = failed_with_.find(partner);
      return of_partner == failed_with_.end() || of_partner->second.size() <= 1;
    });
    if (innocent >= 2) lost_.insert(node);
  }
  try_again();
}

void PairPlayer::try_again() {
  std::vector<Pair> pairs;
  for (const auto& [node, partners] : failed_with_) {
    for (const int partner : partners) {
      if (node < partner && !is_lost(node) && !is_lost(partner) && !works_again_.contains({node, partner}))
        pairs.emplace_back(node, partner);
    }
  }
  for (const Pair& pair : pairs) {
    if (is_stopped_()) return;
    const Test test{.measure = Measure::bandwidth, .bytes = plan_.bytes};
    const Outcome outcome = play_groups({{.sender = pair.first, .receiver = pair.second}}, {test}).front().front();
    if (outcome.ending != Ending::interrupted) works_again_[pair] = outcome.ending == Ending::measured;
  }
}

std::vector<Finding> PairPlayer::findings() const {
  std::vector<Finding> found;
  const Judgement failed{.verdict = Verdict::fail};
  for (const auto& [pair, detail] : wrong_) {
    found.push_back({.what = Class::wrong,
                     .first = pair.first,
                     .second = pair.second,
                     .judgement = failed,
                     .tests = 1,
                     .detail = detail});
  }
  for (const int node : lost_) {
    const std::set<int>& partners = failed_with_.at(node);
    found.push_back({.what = Class::dead,
                     .first = node,
                     .judgement = failed,
                     .tests = static_cast<int>(partners.size()),
                     .thirds = {partners.begin(), partners.end()},
                     .detail = details_.at(node)});
  }
  for (const auto& [node, partners] : failed_with_) {
    for (const int partner : partners) {
      if (node > partner || is_lost(node) || is_lost(partner)) continue;
      const auto thirds = thirds_.find(node);
      const auto again = works_again_.find({node, partner});
      // Once: it works again, or the end came before it could play again.
      const bool failed_once = again == works_again_.end() || again->second;
      found.push_back({.what = nodes_.size() == 2 ? Class::either : Class::hung,
                       .first = node,
                       .second = partner,
                       .judgement = failed_once ? Judgement{.verdict = Verdict::suspect} : failed,
                       .tests = again == works_again_.end() ? 1 : 2,
                       .thirds = thirds == thirds_.end() ? std::vector<int>() : thirds->second,
                       .detail = details_.at(node)});
    }
  }
  return found;
}

}  // namespace tutti::harness::accept
