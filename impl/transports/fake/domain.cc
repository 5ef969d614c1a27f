// SPDX-License-Identifier: Apache-2.0
#include "impl/transports/fake/domain.h"

#include "impl/transports/build.h"
#include "impl/transports/fake/network.h"
#include "impl/transports/local/domain.h"

namespace tutti::fake {
namespace {

constexpr const char* kName = "fake";

}  // namespace

Result<std::unique_ptr<Domain>> open_domain(const DomainShape& shape, const tutti::Hosts& hosts,
                                            const Weather& weather) {
  std::vector<std::unique_ptr<Domain>> memories;
  for (int host = 0; host < hosts.count(); ++host) {
    const auto ranks_there = static_cast<int>(hosts.ranks_on(host).size());
    TUTTI_ASSIGN_OR_RETURN(auto memory, local::open_domain(host_shape(shape, ranks_there)));
    memories.push_back(std::move(memory));
  }
  auto world = std::make_unique<HostsWorld>(kName, shape, hosts, std::move(memories));
  const auto air = std::make_shared<Air>(shape.ranks);
  const MakeNetwork of_group = [=](const Outlook& outlook) {
    return Result(make_group_network(air, outlook, weather));
  };
  for (int rank = 0; rank < shape.ranks; ++rank) {
    const MakeNetwork make = [&](const Outlook& outlook) { return Result(make_network(air, outlook, weather)); };
    TUTTI_RETURN_IF_ERROR(world->add_view(rank, make, of_group));
  }
  return std::unique_ptr<Domain>(std::move(world));
}

Result<std::unique_ptr<Domain>> open_domain(const DomainShape& shape, const Weather& weather) {
  return open_domain(shape, tutti::Hosts::in_blocks(shape.ranks, shape.hosts), weather);
}

const Transport& transport() {
  static constexpr Transport kRow{
      .number = kTransportNumber,
      .built_for = kTransportBuild,
      .name = kName,
      .note = "pretended hosts in one process, for tests: threads, tasks",
      .serves = bit_of(RanksIn::one_process),
      .addresses_peers = false,
      .spans_hosts = true,
      .shape = shape_across_hosts,
      .shared_bytes = [](const DomainShape&, RanksIn) { return std::size_t{0}; },
      .open = [](const DomainShape& shape,
                 const Opening& opening) { return open_domain(shape, {.seed = opening.seed}); },
  };
  return kRow;
}

}  // namespace tutti::fake
