// SPDX-License-Identifier: Apache-2.0
#include "impl/transports/tcp/domain.h"

#include "impl/transports/build.h"
#include "impl/transports/tcp/network.h"

namespace tutti::tcp {
namespace {

constexpr MetTransport kMet{.name = "tcp", .make = [](const NetworkPlace& place) -> Result<std::unique_ptr<Network>> {
                              TUTTI_ASSIGN_OR_RETURN(
                                  auto network,
                                  TcpNetwork::make(place.outlook, {.interface = place.interface, .key = place.key}));
                              return std::unique_ptr<Network>(std::move(network));
                            }};

}  // namespace

Result<std::unique_ptr<Domain>> open_in_process(const DomainShape& shape, const Hosts& hosts,
                                                const std::string& interface, const Route& route) {
  return open_met_world_in_process(kMet, shape, hosts, interface, route);
}

const Transport& transport() {
  static constexpr Transport kRow{
      .number = kTransportNumber,
      .built_for = kTransportBuild,
      .name = kMet.name,
      .note = "processes on several hosts (--hosts); on pretended ones also threads, tasks: these talk over 127.0.0.1",
      .serves = bit_of(RanksIn::own_processes) | bit_of(RanksIn::one_process),
      .addresses_peers = false,
      .spans_hosts = true,
      .shape = shape_across_hosts,
      .shared_bytes = bytes_of_met_world,
      .open = [](const DomainShape& shape, const Opening& opening) { return open_met_world(kMet, shape, opening); },
  };
  return kRow;
}

}  // namespace tutti::tcp
