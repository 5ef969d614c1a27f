// SPDX-License-Identifier: Apache-2.0
// The launcher: launch starts the ranks of a job, hands their messages on, watches for deaths and hangs, and leaves
// nothing behind.
#pragma once

#include "harness/launch/job.h"

namespace tutti::harness::launch {

/// Runs `job` to its end. When it returns, no process, segment, socket or directory of the job is left, however it
/// ended. Returns within 2 s of a rank's death at any moment, and within job.timeout + 5 s of a rank's stop. One launch
/// at a time per process. Handles SIGINT, SIGTERM and SIGHUP while it runs (see interrupts.h). Errors (nothing was
/// started or all of it is gone): invalid_argument, resource (limits.h; memory for the segments), with the numbers,
/// unavailable (the program or mpirun cannot be executed), io. What happens to a started job is in the Outcome.
[[nodiscard]] Result<Outcome> launch_job(const Job& job, Listener& listener);

}  // namespace tutti::harness::launch
