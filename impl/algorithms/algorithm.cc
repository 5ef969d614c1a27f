// SPDX-License-Identifier: Apache-2.0
#include "impl/algorithms/algorithm.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "impl/schedule/turning.h"
#include "impl/types/names.h"

namespace tutti {

std::span<const Algorithm* const> generated_algorithms();

namespace {

bool comes_before(const Algorithm* a, const Algorithm* b) {
  return a->collective != b->collective ? a->collective < b->collective : a->name < b->name;
}

std::vector<const Algorithm*>& table() {
  static std::vector<const Algorithm*> sorted = [] {
    const auto list = generated_algorithms();
    std::vector<const Algorithm*> algorithms(list.begin(), list.end());
    std::sort(algorithms.begin(), algorithms.end(), comes_before);
    for (std::size_t i = 1; i < algorithms.size(); ++i) {
      const Algorithm &a = *algorithms[i - 1], &b = *algorithms[i];
      TUTTI_ASSERT(a.collective != b.collective || a.name != b.name, "{} {} is defined twice", to_string(a.collective),
                   a.name);
    }
    return algorithms;
  }();
  return sorted;
}

}  // namespace

std::span<const Algorithm* const> all_algorithms() { return table(); }

/// One that is added (added.h).
void insert_algorithm(const Algorithm* algorithm) {
  auto& all = table();
  all.insert(std::upper_bound(all.begin(), all.end(), algorithm, comes_before), algorithm);
}

std::span<const Algorithm* const> algorithms_of(Collective collective) {
  if (has_counts(collective)) {
    static const auto lists = [] {
      std::map<Collective, std::vector<const Algorithm*>> of;
      for (const Collective form : every_collective()) {
        for (const Algorithm* algorithm : algorithms_of(base_of(form))) {
          if (has_counts(form) && algorithm->takes_counts) of[form].push_back(algorithm);
        }
      }
      return of;
    }();
    const auto found = lists.find(collective);
    return found == lists.end() ? std::span<const Algorithm* const>() : found->second;
  }
  const auto all = all_algorithms();
  const auto is_of = [collective](const Algorithm* algorithm) { return algorithm->collective == collective; };
  const auto first = std::find_if(all.begin(), all.end(), is_of);
  const auto last = std::find_if_not(first, all.end(), is_of);
  return {first, last};
}

Result<const Algorithm*> find_algorithm(Collective collective, std::string_view name) {
  std::vector<std::string> names;
  for (const Algorithm* algorithm : algorithms_of(collective)) {
    if (algorithm->name == name) return algorithm;
    names.emplace_back(algorithm->name);
  }
  return unknown_name(std::string(to_string(collective)) + " algorithm", name, names);
}

int slots_of_whole_message(const Problem& problem, int slices) { return problem.ranks > 1 ? slices : 0; }
int one_slot(const Problem& problem, int /*slices*/) { return problem.ranks > 1 ? 1 : 0; }

namespace {

std::function<Step(int, int)> steps_of(const Algorithm& algorithm, const Problem& problem) {
  if (algorithm.turning == Turning::none) {
    return [&algorithm, problem](int rank, int index) { return algorithm.step(problem, rank, index); };
  }
  const Turner turner(problem, algorithm.shape(problem), algorithm.turning);
  return [&algorithm, problem, turner](int rank, int index) {
    Step first = algorithm.step(problem, 0, index);
    const bool is_own = first.verb == Verb::signal && algorithm.turning == Turning::columns;
    return is_own ? algorithm.step(problem, rank, index) : turner.turned(std::move(first), rank);
  };
}

}  // namespace

Schedule schedule_of(const Algorithm& algorithm, const Problem& problem) {
  return {.problem = problem,
          .name = std::string(algorithm.name),
          .shape = algorithm.shape(problem),
          .step_count =
              [&algorithm, problem](int rank) {
                return algorithm.step_count(problem, algorithm.turning == Turning::none ? rank : 0);
              },
          .step = steps_of(algorithm, problem),
          .cost = [&algorithm, problem](int rank) { return algorithm.cost(problem, rank); },
          .least_slots =
              [&algorithm, problem](int slices) {
                return algorithm.least_slots == nullptr ? 0 : algorithm.least_slots(problem, slices);
              },
          .synchronises = algorithm.synchronises || (algorithm.synchronises_on_one_host && problem.is_on_one_host()),
          .stages_in_place = algorithm.stages_in_place,
          .takes_counts = algorithm.takes_counts,
          .turning = algorithm.turning};
}

}  // namespace tutti
