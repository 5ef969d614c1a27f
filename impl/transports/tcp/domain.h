// SPDX-License-Identifier: Apache-2.0
// Ranks on several hosts, with TCP between them (met_world.h).
#pragma once

#include <memory>
#include <string>

#include "impl/transports/met_world.h"

namespace tutti::tcp {

using tutti::Route;

[[nodiscard]] const Transport& transport();
/// All ranks in this process, each with sockets of its own at `interface`. Errors: resource, io.
[[nodiscard]] Result<std::unique_ptr<Domain>> open_in_process(const DomainShape& shape, const Hosts& hosts,
                                                              const std::string& interface = "127.0.0.1",
                                                              const Route& route = {});

}  // namespace tutti::tcp
