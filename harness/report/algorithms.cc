// SPDX-License-Identifier: Apache-2.0
#include "harness/report/algorithms.h"

#include <fmt/format.h>

#include "harness/draw/gallery.h"
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
  text +=
      "\nThe pictures are what `tutti draw` makes of the schedules: ranks down, rounds to the right. A round is what "
      "one port "
      "allows,\nnot a time. `scripts/figures` remakes them.\n";
  Collective collective = Collective::barrier;
  for (const Algorithm* algorithm : all_algorithms()) {
    const bool is_first = algorithm == all_algorithms().front() || algorithm->collective != collective;
    collective = algorithm->collective;
    if (is_first) text += fmt::format("\n## {}\n", to_string(collective));
    const draw::DrawnSchedule drawn{.algorithm = *algorithm, .problem = draw::shown_problem(*algorithm)};
    text += fmt::format("\n![{}: {}]({}/{}.svg)\n", title_of(drawn), algorithm->summary, to_string(collective),
                        algorithm->name);
  }
  return text;
}

}  // namespace tutti::harness::report
