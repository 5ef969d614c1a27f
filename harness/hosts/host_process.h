// SPDX-License-Identifier: Apache-2.0
// The process that the launcher of a job on several hosts has on each of them. It holds the connection to the launcher,
// and ends with it. What it does for a group of ranks is a Work (work.h).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/floors.h"
#include "harness/hosts/host_talk.h"
#include "harness/hosts/work.h"
#include "impl/types/status.h"

namespace tutti::harness::hosts {

/// What a program gives its host processes.
struct HostProgram {
  std::string build;                  ///< compared with the launcher's
  LookAtRanks look;                   ///< see Work
  std::vector<std::string> examiner;  ///< its command (examiner.h); empty: it has none
};

/// From the invitation on stdin to the end. Nothing of the job is left here when it returns, unless this process is
/// killed: then the kernel kills the ranks. Errors: invalid_argument (no invitation), unavailable (the launcher cannot
/// be reached), mismatch (another program answers), io.
Status run_host_process(const HostProgram& program);
/// Called once if the launcher is lost before it has ended the job: "is gone", "has said nothing for 10 s".
using OnLostLauncher = std::function<void(std::string_view what)>;
/// run_host_process with an invitation that did not come over stdin, for a job of a starter (joined_hosts.h). Errors:
/// also aborted, if the job has failed.
Status serve_as_host_process(const Invitation& invitation, const HostProgram& program,
                             const OnLostLauncher& on_lost_launcher);

}  // namespace tutti::harness::hosts
