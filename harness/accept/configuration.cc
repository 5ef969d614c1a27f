// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/configuration.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "harness/accept/cells.h"
#include "harness/statistics/statistics.h"

namespace tutti::harness::accept {
namespace {

constexpr std::uint64_t kSeed = 0x636f6e666967;
constexpr std::size_t kMessages = 16;  // of an all_reduce: bandwidth counts, not starts
constexpr std::size_t kMostControls = 4;

double speed_of(const Outcome& outcome) { return outcome.ending == Ending::measured ? outcome.log_speed : kNothing; }

constexpr int kTimes = 3;  // that both play what has failed

/// The library failed on these nodes, and the bare transport did not.
Finding of_failure(Group members, const Outcome& failure, int rail) {
  std::ranges::sort(members);
  Finding found{.what = Class::configuration,
                .judgement = {.verdict = Verdict::fail},
                .tests = 2 * kTimes,
                .visits = 1,
                .members = std::move(members),
                .detail = failure.detail};
  found.bare.verdict = Verdict::pass;
  found.rail = rail;
  return found;
}

bool is_slow_class(const Finding& finding) {
  switch (finding.what) {
    case Class::node:
    case Class::nic:
    case Class::nic_out:
    case Class::nic_in:
    case Class::link:
    case Class::link_dir:
      return !finding.judgement.is_fast;
    default:
      return false;
  }
}

}  // namespace

Configuration::Configuration(Crew& crew, const PairsPlan& plan, std::vector<int> good, Observer& observer)
    : crew_(crew), plan_(plan), good_(std::move(good)), observer_(observer), random_(plan.seed ^ kSeed) {}

Configuration::Both Configuration::play(const std::vector<Group>& groups, Test test) {
  Both both;
  const bool begins_bare = turns_++ % 2 == 1;
  for (const bool is_bare : {begins_bare, !begins_bare}) {
    test.is_bare = is_bare;
    for (const auto& of_group : crew_.play(groups, {test})) {
      (is_bare ? both.bare : both.library).push_back(of_group.front());
    }
  }
  return both;
}

Test Configuration::test_of(const Finding& finding) const {
  return {.measure = Measure::all_reduce, .bytes = kMessages * plan_.bytes, .rail = finding.rail};
}

std::vector<Group> Configuration::beside(const Group& suspects) {
  std::vector<int> free;
  std::ranges::copy_if(good_, std::back_inserter(free), [&](int node) { return !std::ranges::count(suspects, node); });
  random_.shuffle(free);
  const auto is_far = [&](const Group& pair) { return crew_.leaf_of(pair[0]) != crew_.leaf_of(pair[1]); };
  Group pair = suspects;
  if (pair.size() == 1) {
    const auto near = std::ranges::find_if(free, [&](int node) { return !is_far({pair.front(), node}); });
    const auto partner = near == free.end() ? free.begin() : near;
    if (partner == free.end()) return {};
    pair.push_back(*partner);
    free.erase(partner);
  }
  std::vector<Group> groups{pair};
  while (free.size() >= 2 && groups.size() <= kMostControls) {
    const int one = free.back();
    free.pop_back();
    const auto other = std::ranges::find_if(free, [&](int node) { return is_far({one, node}) == is_far(pair); });
    if (other == free.end()) continue;
    groups.push_back({one, *other});
    free.erase(other);
  }
  return groups.size() < 2 ? std::vector<Group>() : groups;
}

std::optional<Finding> Configuration::of(const Finding& finding) {
  if (is_slow_class(finding)) return of_slow(finding);
  // Wrong data are never excused.
  const bool has_failed = finding.what == Class::hung || finding.what == Class::dead || finding.what == Class::either;
  const bool is_sure = finding.judgement.verdict == Verdict::fail;
  return has_failed && is_sure && finding.judgement.middle == 0 ? of_failed(finding) : std::nullopt;
}

std::optional<Finding> Configuration::of_slow(const Finding& finding) {
  Group suspects{finding.first};
  if (finding.second >= 0) suspects.push_back(finding.second);
  std::vector<std::vector<double>> library, bare;
  Judgement of_library, of_bare;
  int turns = 0;
  const auto is_open = [](const Judgement& one) {
    return one.verdict != Verdict::pass && one.verdict != Verdict::fail;
  };
  while (std::ssize(library) < kMostVisits && !observer_.is_stopped()) {
    if (!library.empty()) crew_.pause();
    library.emplace_back();
    bare.emplace_back();
    for (int turn = 0; turn < kTurns && !observer_.is_stopped(); ++turn) {
      const std::vector<Group> groups = beside(suspects);
      if (groups.empty()) return std::nullopt;
      observer_.on_round("configuration", ++turns, kMostVisits * kTurns);
      const Both both = play(groups, test_of(finding));
      const auto off = [](const std::vector<Outcome>& outcomes) {
        std::vector<double> controls;
        for (auto one = outcomes.begin() + 1; one != outcomes.end(); ++one) controls.push_back(speed_of(*one));
        return speed_of(outcomes.front()) - median_of_numbers(controls);
      };
      const double of_one = off(both.library), of_other = off(both.bare);
      if (std::isnan(of_one) || std::isnan(of_other)) continue;
      library.back().push_back(of_one);
      bare.back().push_back(of_other);
    }
    of_library = judge(library, plan_.limits);
    of_bare = judge(bare, plan_.limits);
    if (std::ssize(library) >= kLeastVisits && !is_open(of_library) && !is_open(of_bare)) break;
  }
  const bool is_slow = of_library.verdict == Verdict::fail && !of_library.is_fast;
  if (!is_slow || of_bare.verdict != Verdict::pass) return std::nullopt;
  Finding found{.what = Class::configuration,
                .judgement = of_library,
                .tests = 2 * turns,
                .visits = static_cast<int>(library.size()),
                .members = std::move(suspects)};
  found.bare = of_bare;
  found.rail = finding.rail;
  return found;
}

std::optional<Finding> Configuration::of_alone(const std::vector<int>& nodes, const std::vector<Test>& tests) {
  std::vector<Group> groups;
  for (const int node : nodes) {
    if (crew_.absence_of(node).empty()) groups.push_back({node});
  }
  Outcome failure;
  for (int time = 0; time < kTimes && !groups.empty() && !observer_.is_stopped(); ++time) {
    observer_.on_round("configuration", time + 1, kTimes);
    std::vector<bool> fails(groups.size()), is_well(groups.size(), true);
    for (const Test& test : tests) {
      const Both both = play(groups, test);
      for (std::size_t i = 0; i < groups.size(); ++i) {
        is_well[i] = is_well[i] && both.bare[i].ending == Ending::measured;
        if (!is_failure(both.library[i])) continue;
        fails[i] = true;
        failure = both.library[i];
      }
    }
    std::vector<Group> kept;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (fails[i] && is_well[i]) kept.push_back(groups[i]);
    }
    groups = std::move(kept);
  }
  if (groups.empty() || !is_failure(failure)) return std::nullopt;
  Group members;
  for (const Group& one : groups) members.push_back(one.front());
  return of_failure(std::move(members), failure, kNoRail);
}

std::optional<Finding> Configuration::of_failed(const Finding& finding) {
  Group group = finding.members;
  if (group.empty()) {
    group.push_back(finding.first);
    if (finding.second >= 0) group.push_back(finding.second);
    if (finding.second < 0 && !finding.thirds.empty()) group.push_back(finding.thirds.front());
  }
  const bool are_there = std::ranges::all_of(group, [&](int node) { return crew_.absence_of(node).empty(); });
  if (group.size() < 2 || !are_there) return std::nullopt;
  Test test{.measure = Measure::all_reduce, .bytes = plan_.bytes, .rail = finding.rail};
  Outcome failure;
  for (int time = 0; time < kTimes && !observer_.is_stopped(); ++time) {
    observer_.on_round("configuration", time + 1, kTimes);
    const Both both = play({group}, test);
    if (both.bare.front().ending != Ending::measured || !is_failure(both.library.front())) return std::nullopt;
    failure = both.library.front();
  }
  if (!is_failure(failure)) return std::nullopt;
  return of_failure(std::move(group), failure, finding.rail);
}

std::optional<LibraryRatio> Configuration::ratio() {
  if (good_.size() < 2) return std::nullopt;
  LibraryRatio ratio{.judgement = {}, .bytes = kMessages * plan_.bytes, .nodes = good_};
  std::vector<std::vector<double>> visits(kLeastVisits);
  for (int visit = 0; visit < kLeastVisits; ++visit) {
    if (visit > 0) crew_.pause();
    for (int turn = 0; turn < kTurns && !observer_.is_stopped(); ++turn) {
      observer_.on_round("configuration", visit * kTurns + turn + 1, kLeastVisits * kTurns);
      const Both both = play({good_}, {.measure = Measure::all_reduce, .bytes = ratio.bytes});
      const double one = speed_of(both.library.front()) - speed_of(both.bare.front());
      if (std::isnan(one)) return std::nullopt;
      visits[static_cast<std::size_t>(visit)].push_back(one);
    }
  }
  if (visits.back().empty()) return std::nullopt;
  // Faster is no fault.
  constexpr double kHalf = 0.5, kAnySpeed = 1e6;
  ratio.judgement = judge(visits, {.margin = kHalf, .too_fast = kAnySpeed, .confidence = plan_.limits.confidence});
  return ratio;
}

Finding Configuration::finding_of(const LibraryRatio& ratio) {
  Finding found{.what = Class::configuration,
                .judgement = ratio.judgement,
                .tests = 2 * kLeastVisits * kTurns,
                .visits = kLeastVisits,
                .members = ratio.nodes};
  return found;
}

}  // namespace tutti::harness::accept
