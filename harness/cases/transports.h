// SPDX-License-Identifier: Apache-2.0
// Which transport ranks have: the one mapping from --ranks-as to what a transport serves (impl/transports/transport.h).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "harness/cases/case.h"
#include "harness/cases/conditions.h"
#include "harness/cases/ranks_as.h"
#include "impl/transports/hosts.h"
#include "impl/transports/transport.h"
#include "impl/types/status.h"

namespace tutti::harness::cases {

[[nodiscard]] constexpr RanksIn ranks_in(RanksAs ranks_as) {
  return ranks_as == RanksAs::processes ? RanksIn::own_processes : RanksIn::one_process;
}

[[nodiscard]] bool serves(const Transport& transport, RanksAs ranks_as);
/// The transport of that name, for these ranks. Errors: those of find_transport; invalid_argument where it does not
/// serve them, naming one that does.
[[nodiscard]] Result<const Transport*> transport_for(std::string_view name, RanksAs ranks_as,
                                                     std::span<const std::string> folders);

/// What there is of it on this machine; empty: it needs nothing. `folders` may have what it runs on its devices.
/// Errors: unavailable, with why ranks of this machine cannot use it.
[[nodiscard]] Result<std::string> devices_of(const Transport& transport, std::span<const std::string> folders);
/// Whether this machine can run its ranks. Errors: those of devices_of, naming it.
[[nodiscard]] Status is_usable_here(const Transport& transport, std::span<const std::string> folders);

/// The transport of processes on several hosts where nobody names one.
[[nodiscard]] const std::string& usual_transport_between_hosts();
/// Which ranks are on which host. Requires: hosts_for says that there are several, or one.
[[nodiscard]] Hosts layout_for(const Transport& transport, int ranks, const Conditions& conditions);
/// How many hosts that many ranks are on: those that are named, those that are pretended, or one for each rank where
/// nobody chose; 1 on a transport whose ranks share memory.
[[nodiscard]] int hosts_for(const Transport& transport, int ranks, const Conditions& conditions);
/// The same of a case, whose transport is one of this build or loaded, or else has one host.
[[nodiscard]] int hosts_of(const Case& one, const Conditions& conditions);
/// What is run, with the number of ranks on each host where there are several.
[[nodiscard]] Problem problem_on_hosts(const Case& one, const Conditions& conditions);
/// Whether its algorithm is for hosts of equally many ranks, and takes each rank for a host of its own since they are
/// not.
[[nodiscard]] bool is_flat_on_hosts(const Case& one, const Conditions& conditions);
/// Whether no rank of the case would touch memory of another host. Errors: unavailable, naming the algorithm.
[[nodiscard]] Status stays_on_hosts(const Case& one, const Conditions& conditions);
/// Whether ranks on each of these transports, of which there is one, have a GPU of their own. Requires: they are found.
[[nodiscard]] bool have_gpus_each(std::span<const std::string> transports, std::span<const std::string> folders);
/// Whether its ranks of the own collectives run on GPUs, or as what stands for one.
[[nodiscard]] bool runs_on_devices(const Case& one);
/// The algorithm that `auto` chooses for the case; `cores` as for choose_algorithm.
[[nodiscard]] std::string chosen_algorithm(const Case& one, const Conditions& conditions, int cores);
/// Whether that is from the cost formula, since nothing was measured on such ranks.
[[nodiscard]] bool is_chosen_by_formula(const Case& one, const Conditions& conditions, int cores);

}  // namespace tutti::harness::cases
