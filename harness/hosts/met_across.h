// SPDX-License-Identifier: Apache-2.0
// The meeting of a job of a starter that has no launcher (joined_job.h) and is on several hosts. Its processes learn of
// each other and of the addresses at which the ranks will meet. The first process of each host is connected with
// process 0. Over these connections each host learns how the job ends.
#pragma once

#include <string>
#include <vector>

#include "harness/board/across.h"
#include "harness/board/runner_sockets.h"
#include "harness/floors.h"
#include "harness/hosts/joined_hosts.h"
#include "impl/types/status.h"

namespace tutti::harness::hosts {

struct MetAcross {
  JoinedHosts hosts;
  std::vector<std::string> texts;  ///< by process
  AcrossPlace place;
  AcrossListeners listeners;          ///< of process 0
  std::vector<RunnerSocket> between;  ///< the first of a host: to process 0; that: to all of them
};

/// `text`: what the others learn about this process. Every process of the job calls it. Errors: those of meet_hosts and
/// of connect_to_runners.
[[nodiscard]] Result<MetAcross> meet_across(const HostsMeeting& meeting, const std::string& text);

}  // namespace tutti::harness::hosts
