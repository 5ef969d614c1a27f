// SPDX-License-Identifier: Apache-2.0
// The stage inventory of `tutti accept`: what differs between the hosts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/accept/acceptance.h"
#include "harness/accept/report.h"
#include "impl/types/status.h"
#include "src/accept_plan.h"

namespace tutti::program {

struct Inventory {
  std::vector<harness::accept::InventoryNote> notes;  ///< the most severe first
  std::map<std::string, std::string> kept_out;        ///< by host: why it does not play, as the plan's differences say
};

/// Asks each host what `tutti doctor --hosts` asks. Hosts that a starter reaches, and not an agent, are not asked.
/// Returns nothing if the plan leaves the stage out.
[[nodiscard]] Inventory inventory_of(const AcceptRequest& request, const harness::accept::AcceptPlan& plan);

/// Errors: invalid_argument naming a difference that no inventory has.
[[nodiscard]] Status check_differences(const harness::accept::AcceptPlan& plan);

}  // namespace tutti::program
