// SPDX-License-Identifier: Apache-2.0
// Ranks on several hosts, with RDMA between them (met_world.h): a shared object, for it needs libibverbs. Hosts that
// are pretended take turns in having the devices of this machine.
#pragma once

#include <memory>

#include "impl/transports/met_world.h"

namespace tutti::verbs {

[[nodiscard]] const Transport& transport();
/// All ranks in this process. Errors: unavailable, resource, io.
[[nodiscard]] Result<std::unique_ptr<Domain>> open_in_process(const DomainShape& shape, const Hosts& hosts);

}  // namespace tutti::verbs
