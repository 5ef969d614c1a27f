// SPDX-License-Identifier: Apache-2.0
#include "impl/transports/verbs/domain.h"

#include <fmt/ranges.h>

#include "impl/transports/build.h"
#include "impl/transports/verbs/network.h"

namespace tutti::verbs {
namespace {

constexpr MetTransport kMet{.name = "verbs",
                            .mirrors_in_one_piece = true,
                            .make = [](const NetworkPlace& place) -> Result<std::unique_ptr<Network>> {
                              TUTTI_ASSIGN_OR_RETURN(auto network, VerbsNetwork::make(place));
                              return std::unique_ptr<Network>(std::move(network));
                            }};

Result<std::string> devices(const Surroundings& /*here*/) {
  TUTTI_ASSIGN_OR_RETURN(const auto ports, ports_here());
  std::vector<std::string> names;
  for (const Port& port : ports) names.push_back(to_text(port));
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

Result<std::unique_ptr<Domain>> open_in_process(const DomainShape& shape, const Hosts& hosts) {
  return open_met_world_in_process(kMet, shape, hosts);
}

const Transport& transport() {
  static constexpr Transport kRow{
      .number = kTransportNumber,
      .built_for = kTransportBuild,
      .name = kMet.name,
      .note = "processes on several hosts, over RDMA (--hosts); on pretended ones also threads, tasks",
      .serves = bit_of(RanksIn::own_processes) | bit_of(RanksIn::one_process),
      .addresses_peers = false,
      .spans_hosts = true,
      .shape = shape_across_hosts,
      .shared_bytes = bytes_of_met_world,
      .open = [](const DomainShape& shape, const Opening& opening) { return open_met_world(kMet, shape, opening); },
      .devices = devices,
  };
  return kRow;
}

}  // namespace tutti::verbs
