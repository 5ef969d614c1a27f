// SPDX-License-Identifier: Apache-2.0
// Which ranks are on which of the hosts that a user has named.
#pragma once

#include <vector>

#include "harness/floors.h"
#include "impl/transports/hosts.h"
#include "impl/types/host_list.h"

namespace tutti::harness::cases {

/// Each host in its turn gets one more rank while it has a slot; ranks are then numbered by hosts. A host that would
/// get none is not in it. Requires: 1 <= ranks <= slots_of(hosts).
[[nodiscard]] Hosts dealt_to(const std::vector<NamedHost>& hosts, int ranks);

}  // namespace tutti::harness::cases
