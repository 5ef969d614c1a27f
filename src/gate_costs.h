// SPDX-License-Identifier: Apache-2.0
// What `tutti gate` counts before anything is timed.
#pragma once

#include <string>
#include <vector>

#include "harness/process/interrupts.h"
#include "src/gate_plan.h"

namespace tutti::program {

struct GateCosts {
  std::string compared = {};              ///< with the other build, in words; empty: nothing
  std::vector<std::string> remarks = {};  ///< what was counted of this build alone; what was not, and why
};
/// That the steps of each cell are what their formulas say, and beside another build no more than there. Where the
/// other side does not count: that operations neither allocate nor call the kernel. Notes in `evidence`, which is one
/// for each of the plan's cases. Errors: those of an algorithm's name; aborted where interrupted.
[[nodiscard]] Result<GateCosts> compare_costs(const GatePlan& plan, const harness::Interrupts& interrupts,
                                              std::vector<harness::Evidence>& evidence);

}  // namespace tutti::program
