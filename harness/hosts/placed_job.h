// SPDX-License-Identifier: Apache-2.0
// PlacedJob: a job, and the hosts that its ranks are on.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/hosts/joined_hosts.h"
#include "harness/launch/job.h"
#include "impl/types/status.h"

namespace tutti::harness::hosts {

/// A host of a job on several.
struct JobHost {
  std::string name;              ///< as the agent takes it
  int ranks = 1;                 ///< that run there: those after the ranks of the hosts before
  std::size_t domain_bytes = 0;  ///< memory that they share
};

struct JobAcross {
  std::vector<JobHost> hosts;
  std::string agent = "ssh";  ///< started as `AGENT HOST COMMAND...`
  std::string interface;      ///< see find_interface; empty: of the route to the first other host
  std::string build;          ///< what all hosts must have
  /// The hosts of a job that a starter has started, which come by themselves. It serves one job.
  std::shared_ptr<JoinedHosts> joined = nullptr;
  int rail = -1;  ///< of a group of a crew: over which of its rails ranks meet; -1: over the usual interface
};

struct PlacedJob : Job {
  std::optional<JobAcross> across = {};  ///< empty: the ranks are on this host
};

/// Starts the ranks on their hosts and waits for the end of the job, as launch_job does. Errors: those of launch_job;
/// unavailable if the start command cannot reach other hosts.
[[nodiscard]] Result<Outcome> launch_placed(const PlacedJob& job, Listener& listener);

}  // namespace tutti::harness::hosts
