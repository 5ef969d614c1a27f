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
constexpr std::size_t kMostKept = 512;                   // of a kind: the median of more is no better
constexpr int kLeastSlow = 4;                            // tests of a node, before it is named
constexpr double kMostlySlow = 0.75;

}  // namespace

Running::Running(const Crew& crew, double margin) : crew_(crew), least_(std::log1p(-margin)) {}

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
  const auto add = [&](int node, Way way) {
    Tests& tests = tests_[{node, way, test.rail}];
    ++tests.all;
    tests.slow += is_slow(of_alike);
  };
  if (test.measure == Measure::alone) add(group.front(), Way::alone);
  if (test.measure != Measure::bandwidth && test.measure != Measure::back) return;
  const bool is_back = test.measure == Measure::back;
  add(group[is_back ? 1 : 0], Way::out);
  add(group[is_back ? 0 : 1], Way::in);
}

std::string Running::news() const {
  std::string text;
  const auto share = [](const auto& one) { return static_cast<double>(one.second.slow) / one.second.all; };
  const auto worst = std::ranges::max_element(tests_, {}, share);
  if (worst != tests_.end() && worst->second.slow >= kLeastSlow && share(*worst) >= kMostlySlow) {
    const Way way = std::get<Way>(worst->first);
    text += fmt::format("; {} {} in {} of {} tests so far (no verdict)", crew_.name_of(std::get<0>(worst->first)),
                        way == Way::out  ? "sends slowly"
                        : way == Way::in ? "receives slowly"
                                         : "is slow alone",
                        worst->second.slow, worst->second.all);
  }
  if (failed_.empty()) return text;
  std::vector<std::string> names;
  for (const int node : *failed_.begin()) names.push_back(crew_.name_of(node));
  text += fmt::format("; {} failed, goes on", fmt::join(names, " - "));
  if (failed_.size() > 1) text += fmt::format(" ({} more)", failed_.size() - 1);
  return text;
}

}  // namespace tutti::harness::accept
