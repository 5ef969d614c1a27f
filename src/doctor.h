// SPDX-License-Identifier: Apache-2.0
// What `tutti doctor --hosts` asks of hosts, for the other subcommands that need it.
#pragma once

#include <string>
#include <vector>

#include "harness/doctor/host_visits.h"
#include "impl/types/status.h"
#include "src/options.h"

namespace tutti::program {

/// The command that answers on stdout what hosts are asked on stdin (harness/doctor/host_look.h).
[[nodiscard]] std::vector<std::string> examiner_command();

/// Looks at each host of `places`, through its agent, all at once. Errors: of this machine alone.
[[nodiscard]] Result<std::vector<harness::Visit>> visit_hosts_of(const Settings& places);

}  // namespace tutti::program
