// SPDX-License-Identifier: Apache-2.0
// Whether a job has failed because a reference cannot be started here, and the reason in one line.
#pragma once

#include <string>
#include <vector>

#include "harness/launch/job.h"
#include "harness/session/session.h"
#include "src/references.h"

namespace tutti::program {

/// The references that cannot be started here: those of a start command that has ended before all ranks had come, or
/// the one in whose own start a rank has failed. Empty: another fault. A process that was killed or stopped from
/// outside is such a fault. Requires: the job has not begun a cell.
[[nodiscard]] std::vector<std::string> not_started(const harness::SessionSpec& spec, const Starter& starter,
                                                   const harness::Outcome& outcome);

/// What happened, and the line of the job's log that says most about it.
[[nodiscard]] std::string why_not_started(const harness::Outcome& outcome);

}  // namespace tutti::program
