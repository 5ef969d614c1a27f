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

/// What there is of it on this machine, which is to run its ranks. Errors: unavailable, naming it.
[[nodiscard]] Status is_usable_here(const Transport& transport);

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
/// Whether no rank of the case would touch memory of another host. Errors: unavailable, naming the algorithm.
[[nodiscard]] Status stays_on_hosts(const Case& one, const Conditions& conditions);
/// The algorithm that `auto` chooses for the case; `cores` as for choose_algorithm.
[[nodiscard]] std::string chosen_algorithm(const Case& one, const Conditions& conditions, int cores);
/// Whether that is from the cost formula, since nothing was measured on such ranks.
[[nodiscard]] bool is_chosen_by_formula(const Case& one, const Conditions& conditions, int cores);

}  // namespace tutti::harness::cases
