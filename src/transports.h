// SPDX-License-Identifier: Apache-2.0
// The transports of `tutti list` and --transports: those of this build and shared objects.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "harness/cases/sweep.h"
#include "harness/cases/topology.h"
#include "harness/session/spec.h"
#include "impl/types/status.h"

namespace tutti::program {

/// Where shared objects of transports are looked for: the folders of $TUTTI_TRANSPORTS, then beside the program.
[[nodiscard]] const std::vector<std::string>& transport_directories();
/// Whether they are there and serve the sweep's ranks. Errors: those of transport_for.
[[nodiscard]] Status check_transports(const harness::Sweep& sweep);
/// Where the sweep's ranks are over each of its transports: with the first of its numbers of ranks, once all have been
/// seen to be possible. If the number of ranks is not given, they are as many as what is asked needs. Errors:
/// those of harness::topology_of.
[[nodiscard]] Result<std::vector<harness::Topology>> topologies_of(const harness::Sweep& sweep,
                                                                   const harness::Conditions& conditions);
/// Where the ranks of one cell are. Errors: those of harness::topology_of, naming the cell.
[[nodiscard]] Result<harness::Topology> topology_of_cell(const harness::Case& one,
                                                         const harness::Conditions& conditions);
/// Whether this machine has what they need, unless other machines are named, which say so themselves. Errors:
/// unavailable.
[[nodiscard]] Status check_devices(std::span<const harness::Topology> topologies);
/// If ranks are on several hosts and no backend was named, tutti alone runs. Errors: unavailable for one that
/// was named where the hosts are pretended, for its ranks would find that they are on one machine.
[[nodiscard]] Status settle_across_hosts(harness::Sweep& sweep, const harness::Conditions& conditions);
/// Its ranks use that one.
void set_transport(const std::string& name, harness::SessionSpec& spec);
/// For `tutti list`: name, note, whether it is available, which ranks it serves, whether they address each other's
/// memory.
[[nodiscard]] nlohmann::json list_of_transports();

}  // namespace tutti::program
