// SPDX-License-Identifier: Apache-2.0
// What `tutti doctor --hosts` asks of hosts, for the other subcommands that need it.
#pragma once

#include <vector>

#include "harness/doctor/host_visits.h"
#include "impl/types/status.h"
#include "src/options.h"

namespace tutti::program {

/// Looks at each host of `places`, through its agent, all at once. Errors: of this machine alone.
[[nodiscard]] Result<std::vector<harness::Visit>> visit_hosts_of(const Settings& places);

}  // namespace tutti::program
