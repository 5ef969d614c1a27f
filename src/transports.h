// SPDX-License-Identifier: Apache-2.0
// The transports of `tutti list` and --transports: those of this build and shared objects.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "harness/cases/ranks_as.h"
#include "harness/cases/sweep.h"
#include "harness/session/spec.h"
#include "impl/types/status.h"

namespace tutti::program {

/// Where shared objects of transports are looked for: the folders of $TUTTI_TRANSPORTS, then beside the program.
[[nodiscard]] const std::vector<std::string>& transport_directories();
/// Whether they are there and serve the sweep's ranks. Errors: those of transport_for.
[[nodiscard]] Status check_transports(const harness::Sweep& sweep);
/// Whether the hosts that are pretended have a meaning there. Errors: invalid_argument.
[[nodiscard]] Status check_hosts(const harness::Sweep& sweep, const harness::Conditions& conditions);
/// The same of one cell, which says its transport itself. Errors: invalid_argument, naming it.
[[nodiscard]] Status check_cell_on_hosts(const harness::Case& one, const harness::Conditions& conditions);
/// Whether this machine has what they need, unless other machines are named, which say so themselves. Errors:
/// unavailable.
[[nodiscard]] Status check_devices(const harness::Sweep& sweep, const harness::Conditions& conditions);
/// Where ranks are on several hosts, the backends that nobody named are tutti alone. Errors: unavailable for one that
/// was named where the hosts are pretended, for its ranks would find that they are on one machine.
[[nodiscard]] Status settle_across_hosts(harness::Sweep& sweep, const harness::Conditions& conditions);
/// Its ranks use that one.
void set_transport(const std::string& name, harness::SessionSpec& spec);
/// For `tutti list`: name, note, whether it is available, which ranks it serves, whether they address each other's
/// memory.
[[nodiscard]] nlohmann::json list_of_transports();

}  // namespace tutti::program
