// SPDX-License-Identifier: Apache-2.0
// The nodes that `tutti accept` plays on: hosts, or those of a pretended cluster.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "harness/accept/crew.h"
#include "impl/types/status.h"
#include "src/accept_crew.h"
#include "src/accept_plan.h"

namespace tutti::program {

/// The crew, and what is known of it.
struct OwnedCrew {
  std::unique_ptr<harness::accept::Crew> below;  ///< if `crew` plays with it
  std::unique_ptr<harness::accept::Crew> crew;
  HostsCrew* on_hosts = nullptr;                     ///< where it is one; within `crew`
  std::map<std::string, std::string> left_out = {};  ///< see stages_without
  bool are_leaves_known = false;
  std::string pretended = {};  ///< the text of the pretended cluster
  bool is_pretended = false;
};

/// Starts a process on each host of --hosts, or pretends the cluster of --pretend, on the leaves and rails that were
/// asked. Errors: invalid_argument naming the option; those of HostsCrew::start.
[[nodiscard]] Result<OwnedCrew> crew_of(const AcceptRequest& request, const harness::accept::AcceptPlan& plan);

}  // namespace tutti::program
