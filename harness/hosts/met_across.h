// SPDX-License-Identifier: Apache-2.0
// A job that nobody of ours has started and that has no launcher (joined_job.h), on several hosts: its processes learn
// of each other and of where the ranks will meet. The first process of each host is connected with process 0. Over
// these connections each host hears how the job ends.
#pragma once

#include <string>
#include <vector>

#include "harness/board/across.h"
#include "harness/board/host_sockets.h"
#include "harness/floors.h"
#include "harness/hosts/joined_hosts.h"
#include "impl/types/status.h"

namespace tutti::harness::hosts {

struct MetAcross {
  JoinedHosts hosts;
  int host = 0;                    ///< of this process
  std::vector<std::string> texts;  ///< by process
  AcrossPlace place;
  AcrossListeners listeners;        ///< of process 0
  std::vector<HostSocket> between;  ///< the first of a host: to process 0; that: to all of them
};

/// `text`: what this process says of itself. Every process of the job calls it. Errors: those of meet_hosts and of
/// connect_to_hosts.
[[nodiscard]] Result<MetAcross> meet_across(const HostsMeeting& meeting, const std::string& text);

}  // namespace tutti::harness::hosts
