// SPDX-License-Identifier: Apache-2.0
// The stage inventory of `tutti accept`: what differs between the hosts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/accept/acceptance.h"
#include "harness/accept/report.h"
#include "impl/types/status.h"
#include "src/accept_crew.h"
#include "src/accept_plan.h"

namespace tutti::program {

struct Inventory {
  std::vector<harness::accept::InventoryNote> notes;  ///< the most severe first
  std::map<std::string, std::string> kept_out;        ///< by host: why it does not play, as the plan's differences say
};

/// Asks each host what `tutti doctor --hosts` asks, through its agent. It may take minutes, so it goes before the start
/// of a crew. Returns nothing if the plan leaves the stage out, or a starter has started the hosts' processes.
[[nodiscard]] Inventory inventory_of(const AcceptRequest& request, const harness::accept::AcceptPlan& plan);
/// Asks each host of a crew that a starter has started. Returns nothing if the plan leaves the stage out. Errors:
/// aborted: it was interrupted.
[[nodiscard]] Result<Inventory> inventory_of_joined(HostsCrew& crew, const harness::accept::AcceptPlan& plan);

/// Errors: invalid_argument naming a difference that no inventory has.
[[nodiscard]] Status check_differences(const harness::accept::AcceptPlan& plan);

}  // namespace tutti::program
