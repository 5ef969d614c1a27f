// SPDX-License-Identifier: Apache-2.0
// An algorithm is made of plain functions, so that each added schedule has functions of its own, by its number.
#include "impl/algorithms/added.h"

#include <array>
#include <memory>
#include <utility>

#include "impl/types/names.h"

namespace tutti {

void insert_algorithm(const Algorithm* algorithm);

namespace {

struct Added {
  Schedule schedule;
  bool is_right_in_place = false;
  Algorithm algorithm;
};

std::array<std::unique_ptr<Added>, kMostAdded> added;

template <std::size_t N>
Algorithm make(const Schedule& schedule) {
  return {.collective = schedule.problem.collective,
          .name = schedule.name,
          .summary = "from a file",
          .source = "a file",
          .shape = [](const Problem&) { return added[N]->schedule.shape; },
          .step_count = [](const Problem&, int rank) { return added[N]->schedule.step_count(rank); },
          .step = [](const Problem&, int rank, int index) { return added[N]->schedule.step(rank, index); },
          .cost = [](const Problem&, int rank) { return added[N]->schedule.cost(rank); },
          .least_slots = [](const Problem&, int slices) { return added[N]->schedule.least_slots(slices); }};
}

template <std::size_t... N>
constexpr std::array<Algorithm (*)(const Schedule&), sizeof...(N)> makers(std::index_sequence<N...> /*numbers*/) {
  return {make<N>...};
}

}  // namespace

Status add_algorithm(const Schedule& schedule, bool is_right_in_place) {
  if (find_algorithm(schedule.problem.collective, schedule.name).is_ok()) {
    return error(Code::invalid_argument, "{} has an algorithm '{}' already", to_string(schedule.problem.collective),
                 shown(schedule.name));
  }
  constexpr auto kMakers = makers(std::make_index_sequence<kMostAdded>());
  for (std::size_t i = 0; i < added.size(); ++i) {
    if (added[i] != nullptr) continue;
    added[i] =
        std::make_unique<Added>(Added{.schedule = schedule, .is_right_in_place = is_right_in_place, .algorithm = {}});
    added[i]->algorithm = kMakers[i](added[i]->schedule);
    insert_algorithm(&added[i]->algorithm);
    return {};
  }
  return error(Code::resource, "at most {} algorithms are added", kMostAdded);
}

const Problem* added_problem(const Algorithm& algorithm) {
  for (const auto& one : added) {
    if (one != nullptr && &one->algorithm == &algorithm) return &one->schedule.problem;
  }
  return nullptr;
}

bool has_steps(const Algorithm& algorithm, const Problem& problem, bool is_in_place) {
  for (const auto& one : added) {
    if (one == nullptr || &one->algorithm != &algorithm) continue;
    const Problem& its = one->schedule.problem;
    return its.ranks == problem.ranks && its.root == problem.root && (one->is_right_in_place || !is_in_place);
  }
  return true;
}

}  // namespace tutti
