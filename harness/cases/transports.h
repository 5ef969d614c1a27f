// SPDX-License-Identifier: Apache-2.0
// Which transport ranks have: the one mapping from --ranks-as to what a transport serves (impl/transports/transport.h).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "harness/cases/ranks_as.h"
#include "impl/transports/transport.h"
#include "impl/types/status.h"

namespace tutti::harness::cases {

[[nodiscard]] constexpr RanksIn ranks_in(RanksAs ranks_as) {
  return ranks_as == RanksAs::processes ? RanksIn::own_processes : RanksIn::one_process;
}

/// The transport of that name, for these ranks. Errors: those of find_transport; invalid_argument where it does not
/// serve them, naming one that does.
[[nodiscard]] Result<const Transport*> transport_for(std::string_view name, RanksAs ranks_as,
                                                     std::span<const std::string> folders);

}  // namespace tutti::harness::cases
