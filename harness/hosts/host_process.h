// SPDX-License-Identifier: Apache-2.0
// The process that the launcher of a job on several hosts has on each of them. It holds the connection to the launcher,
// and ends with it. What it does for a group of ranks is a Work (work.h).
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "harness/floors.h"
#include "harness/hosts/host_talk.h"
#include "harness/hosts/work.h"
#include "impl/types/status.h"

namespace tutti::harness::hosts {

/// From the invitation on stdin to the end. Nothing of the job is left here when it returns, unless this process is
/// killed: then the kernel kills the ranks. `build`: compared with the launcher's. `standings`: asked for where a rank
/// has waited for most of the timeout. Errors: invalid_argument (no invitation), unavailable (the launcher cannot be
/// reached), mismatch (who answers is not of this job), io.
Status run_host_process(const std::string& build, const Standings& standings);
/// Told once where the launcher has not said that the job ends: "is gone", "has said nothing for 10 s".
using OnLostLauncher = std::function<void(std::string_view what)>;
/// The same where the invitation has come another way, and nothing is to be read from stdin: in a job that somebody
/// else has started (joined_hosts.h). Errors: also aborted, where the job has failed.
Status serve_as_host_process(const Invitation& invitation, const std::string& build, const Standings& standings,
                             const OnLostLauncher& on_lost_launcher);

}  // namespace tutti::harness::hosts
