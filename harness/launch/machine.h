// SPDX-License-Identifier: Apache-2.0
// The process that the launcher of a job on several machines has on each of them: it starts the machine's ranks, with
// a board and memory of their own, hands on what they say and how they end, and does not outlive the launcher.
#pragma once

#include <string>

#include "harness/floors.h"
#include "impl/types/status.h"

namespace tutti::harness::launch {

/// From the invitation on stdin to the end. Nothing of the job is left here when it returns, unless this process is
/// killed: then the kernel kills the ranks. `build`: compared with the launcher's. Errors: invalid_argument (no
/// invitation), unavailable (the launcher cannot be reached), mismatch (who answers is not of this job), io.
Status run_machine(const std::string& build);

}  // namespace tutti::harness::launch
