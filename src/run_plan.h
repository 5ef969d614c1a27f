// SPDX-License-Identifier: Apache-2.0
// What `tutti run` is to measure: the cells of its options, of a case's id, or of a suite.
#pragma once

#include <vector>

#include "harness/cases/case.h"
#include "harness/cases/expand.h"
#include "impl/types/status.h"
#include "src/options.h"

namespace tutti::program {

struct RunPlan {
  harness::Expansion expansion;                   ///< all cells, and what was asked for and does not exist
  std::vector<std::vector<harness::Case>> cells;  ///< the cases of each cell, sorted by ranks; none is empty
};

/// Settles which backends there are, in `settings` too. Errors: invalid_argument naming the option, or the suite's
/// line; unavailable where a named backend is missing.
[[nodiscard]] Result<RunPlan> run_plan_of(Settings& settings);

/// Prints the cells and an estimate of the time: `tutti run --list`. `starters`: programs that start ranks, each for
/// all cells.
void print_plan(const RunPlan& plan, const Settings& settings, std::size_t starters);

}  // namespace tutti::program
