// SPDX-License-Identifier: Apache-2.0
// Worlds over several hosts, whose ranks meet over TCP before the first of their links is used. What the hosts are, the
// meeting has from whoever opens the world (transport.h): those of a job on several machines (Across), or ones that are
// pretended. These are all this machine, and what is said at the meeting goes over 127.0.0.1. Ranks of two hosts share
// no memory all the same.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "impl/tcp/secret.h"
#include "impl/transports/hosts_domain.h"
#include "impl/transports/transport.h"

namespace tutti {

/// What a network is made of.
struct NetworkPlace {
  const Outlook& outlook;
  std::string interface;  ///< the address at which the rank is reached
  bool is_pretended = false;
  tcp::Secret key;  ///< of the job
};

/// What transports of this kind differ in.
struct MetTransport {
  const char* name;
  bool mirrors_in_one_piece = false;  ///< Mirror::Memory
  Result<std::unique_ptr<Network>> (*make)(const NetworkPlace& place);
};

/// Where a rank looks for another one; the address as it comes where that is where it listens.
using Route = std::function<std::string(int from, int to, const std::string& address)>;

/// Bytes of the memory of a job on pretended hosts.
[[nodiscard]] std::size_t bytes_of_met_world(const DomainShape& shape, RanksIn where);
/// As a transport's `open`. Errors: resource, io, timeout; those of `make`.
[[nodiscard]] Result<std::unique_ptr<Domain>> open_met_world(const MetTransport& transport, const DomainShape& shape,
                                                             const Opening& opening);
/// All ranks in this process, each with sockets of its own at `interface`. Errors: resource, io; those of `make`.
[[nodiscard]] Result<std::unique_ptr<Domain>> open_met_world_in_process(const MetTransport& transport,
                                                                        const DomainShape& shape, const Hosts& hosts,
                                                                        const std::string& interface = "127.0.0.1",
                                                                        const Route& route = {});

}  // namespace tutti
