// SPDX-License-Identifier: Apache-2.0
// Whether a barrier lets ranks go although one has not come: without any clock, and without the rule that the verifier
// judges barriers by.
#pragma once

#include "harness/backends/system.h"
#include "harness/measure/runner.h"

namespace tutti::harness::faults {

/// Runs barriers `calls` of this runner's ranks, one for each rank of the job. In it that rank stays away until all
/// runners have told each other whether a rank of theirs has left. Returns whether one of this runner's has, in any of
/// them. All runners call it. Errors: those of the calls and of the runner; timeout.
[[nodiscard]] Result<bool> leaves_early(Runner& runner, Prepared& calls);

}  // namespace tutti::harness::faults
