// SPDX-License-Identifier: Apache-2.0
#include "harness/report/algorithms.h"

#include <fmt/format.h>

#include "impl/algorithms/algorithm.h"

namespace tutti::harness::report {

std::string algorithms_markdown() {
  constexpr int kRanks = 8;
  std::string text =
      "| collective | algorithm | what it does | steps | messages | units | depth | source |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const Algorithm* algorithm : all_algorithms()) {
    const Problem problem{.collective = algorithm->collective, .ranks = kRanks};
    const Cost cost = algorithm->cost(problem, 0);
    text += fmt::format("| {} | `{}` | {} | {} | {} | {}/{} | {} | {} |\n", to_string(algorithm->collective),
                        algorithm->name, algorithm->summary, cost.steps, cost.messages, cost.units,
                        algorithm->shape(problem).units_per_block, cost.depth, algorithm->source);
  }
  return text;
}

}  // namespace tutti::harness::report
