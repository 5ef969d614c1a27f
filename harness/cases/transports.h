// SPDX-License-Identifier: Apache-2.0
// Which transport ranks have: the one mapping from --ranks-as to what a transport serves (impl/transports/transport.h).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "harness/cases/case.h"
#include "harness/cases/ranks_as.h"
#include "impl/transports/transport.h"
#include "impl/types/status.h"

namespace tutti::harness::cases {

[[nodiscard]] constexpr RanksIn ranks_in(RanksAs ranks_as) {
  return ranks_as->is_process ? RanksIn::own_processes : RanksIn::one_process;
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

/// The transport of processes on several hosts, unless another one is named.
[[nodiscard]] const Transport& transport_between_hosts();

}  // namespace tutti::harness::cases
