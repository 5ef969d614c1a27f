// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/running.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/statistics/statistics.h"

namespace tutti::harness::accept {
namespace {

constexpr std::size_t kLeastAlike = 3, kLeastSoFar = 8;  // tests, so that their median is one of good nodes
constexpr std::size_t kMostKept = 512;  // of a kind: the median of more is no better
constexpr int kLeastSlow = 4;           // tests of a node, before it is named
constexpr double kMostlySlow = 0.75;

bool is_of_few(Measure measure) {
  return measure == Measure::bandwidth || measure == Measure::back || measure == Measure::alone;
}

}  // namespace

Running::Running(const Crew& crew, double margin)
    : crew_(crew), least_(std::log1p(-margin)), by_node_(static_cast<std::size_t>(crew.nodes())) {}

Running::Kind Running::kind_of(const Group& group, const Test& test) const {
  const int leaf = crew_.leaf_of(group.front());
  const bool is_far = std::ranges::any_of(group, [&](int node) { return crew_.leaf_of(node) != leaf; });
  const Measure measure = test.measure == Measure::back ? Measure::bandwidth : test.measure;
  return {measure, test.bytes, test.rail, test.is_bare, group.size(), is_far};
}

bool Running::is_slow(double of_alike) const { return of_alike < least_; }

std::vector<std::vector<std::optional<double>>> Running::add(const std::vector<Group>& groups,
                                                             const std::vector<Test>& tests,
                                                             const std::vector<std::vector<Outcome>>& outcomes) {
  std::map<Kind, std::vector<double>> of_play;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (std::size_t j = 0; j < tests.size(); ++j) {
      const Outcome& outcome = outcomes[i][j];
      if (outcome.ending == Ending::measured) of_play[kind_of(groups[i], tests[j])].push_back(outcome.log_speed);
    }
  }
  std::map<Kind, double> middles;
  for (const auto& [kind, speeds] : of_play) {
    std::vector<double>& all = so_far_[kind];
    if (speeds.size() >= kLeastAlike) middles[kind] = median_of(speeds);
    if (all.size() < kMostKept) all.insert(all.end(), speeds.begin(), speeds.end());
    if (speeds.size() < kLeastAlike && all.size() >= kLeastSoFar) middles[kind] = median_of(all);
  }
  std::vector<std::vector<std::optional<double>>> ratios(groups.size());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (std::size_t j = 0; j < tests.size(); ++j) {
      std::optional<double>& ratio = ratios[i].emplace_back();
      const Outcome& outcome = outcomes[i][j];
      if (is_failure(outcome) && groups[i].size() <= 2) {
        Group nodes = groups[i];
        std::ranges::sort(nodes);
        failed_.insert(std::move(nodes));
      }
      const auto middle = middles.find(kind_of(groups[i], tests[j]));
      if (outcome.ending != Ending::measured || middle == middles.end()) continue;
      ratio = outcome.log_speed - middle->second;
      count(groups[i], tests[j], *ratio);
    }
  }
  return ratios;
}

void Running::count(const Group& group, const Test& test, double of_alike) {
  if (!is_of_few(test.measure)) return;
  for (const int node : group) {
    Tests& tests = by_node_[static_cast<std::size_t>(node)];
    ++tests.all;
    tests.slow += is_slow(of_alike);
  }
}

std::string Running::news() const {
  std::string text;
  const auto share = [](const Tests& tests) {
    return tests.all == 0 ? 0 : static_cast<double>(tests.slow) / tests.all;
  };
  const auto worst = std::ranges::max_element(by_node_, {}, share);
  if (worst != by_node_.end() && worst->slow >= kLeastSlow && share(*worst) >= kMostlySlow) {
    text += fmt::format("; {} slow in {} of {} tests so far (no verdict)",
                        crew_.name_of(static_cast<int>(worst - by_node_.begin())), worst->slow, worst->all);
  }
  if (failed_.empty()) return text;
  std::vector<std::string> names;
  for (const int node : *failed_.begin()) names.push_back(crew_.name_of(node));
  text += fmt::format("; {} failed, goes on", fmt::join(names, " - "));
  if (failed_.size() > 1) text += fmt::format(" ({} more)", failed_.size() - 1);
  return text;
}

}  // namespace tutti::harness::accept
