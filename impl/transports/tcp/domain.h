// SPDX-License-Identifier: Apache-2.0
// Ranks on several hosts, with TCP between them. Where nobody says which these are (Across), they are pretended: all
// are this machine, and talk over 127.0.0.1. Ranks of two hosts share no memory all the same.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "impl/transports/domain.h"
#include "impl/transports/transport.h"

namespace tutti {
class Hosts;
}

namespace tutti::tcp {

[[nodiscard]] const Transport& transport();
/// Where a rank looks for another one; the address as it comes where that is where it listens.
using Route = std::function<std::string(int from, int to, const std::string& address)>;
/// All ranks in this process, each with sockets of its own at `interface`. Errors: resource, io.
[[nodiscard]] Result<std::unique_ptr<Domain>> open_in_process(const DomainShape& shape, const Hosts& hosts,
                                                              const std::string& interface = "127.0.0.1",
                                                              const Route& route = {});

}  // namespace tutti::tcp
