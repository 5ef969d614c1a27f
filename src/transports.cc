// SPDX-License-Identifier: Apache-2.0
#include "src/transports.h"

#include <algorithm>
#include <array>

#include "harness/backends/loader.h"
#include "harness/cases/backend_name.h"
#include "harness/cases/settings.h"
#include "harness/cases/suite.h"
#include "harness/cases/transports.h"
#include "impl/transports/loader.h"

namespace tutti::program {

using harness::RanksAs;

const std::vector<std::string>& transport_directories() {
  static const std::vector<std::string> directories = harness::directories_named_by("TUTTI_TRANSPORTS");
  return directories;
}

Status check_transports(const harness::Sweep& sweep) {
  for (const std::string& name : sweep.transports) {
    TUTTI_RETURN_IF_ERROR(harness::transport_for(name, sweep.ranks_as, transport_directories()).status());
  }
  return {};
}

Result<std::vector<harness::Topology>> topologies_of(const harness::Sweep& sweep,
                                                     const harness::Conditions& conditions) {
  std::vector<harness::Topology> all;
  for (const std::string& name : transports_of(sweep)) {
    const harness::Cell cell{.transport = name, .ranks_as = sweep.ranks_as};
    const harness::TopologySpec spec = topology_spec_of(cell, conditions);
    const std::vector<int> ranks = sweep.ranks.empty() ? std::vector{least_ranks_of(spec)} : sweep.ranks;
    for (const int count : ranks) {
      TUTTI_ASSIGN_OR_RETURN(harness::Topology topology, topology_of(spec, count, transport_directories()));
      if (count == ranks.front()) all.push_back(std::move(topology));
    }
  }
  return all;
}

Result<harness::Topology> topology_of_cell(const harness::Case& one, const harness::Conditions& conditions) {
  auto topology = topology_of(topology_spec_of(one, conditions), one.ranks, transport_directories());
  if (topology.is_ok()) return topology;
  return error(topology.status().code(), "cell '{}': {}", cell_id(one), topology.status().message());
}

Status check_devices(std::span<const harness::Topology> topologies) {
  for (const harness::Topology& one : topologies) {
    const bool is_stood_for = one.ranks_on == harness::RanksOn::own_device && !one.has_gpu_memory();
    if (is_stood_for || !one.asked.options.hosts.empty()) continue;
    TUTTI_RETURN_IF_ERROR(harness::is_usable_here(*one.transport, transport_directories()));
  }
  return {};
}

Status settle_across_hosts(harness::Sweep& sweep, const harness::Conditions& conditions) {
  const std::vector<std::string> own{std::string(harness::kOwnBackend)};
  if (!conditions.topology.hosts.empty()) {
    if (sweep.backends.empty()) sweep.backends = own;
    for (const std::string& system : sweep.backends) {
      if (harness::settings_of(system).empty()) continue;
      return error(
          Code::invalid_argument,
          "backend '{}': settings are for ranks of one host; with --hosts set them in the environment: did you "
          "mean '{}'?",
          system, harness::backend_of(system));
    }
    return {};
  }
  harness::Sweep most = sweep;
  most.ranks = {std::max(std::ranges::max(sweep.ranks), conditions.topology.pretended_hosts)};
  TUTTI_ASSIGN_OR_RETURN(const std::vector<harness::Topology> topologies, topologies_of(most, conditions));
  const auto spans = std::ranges::find_if(topologies, &harness::Topology::spans_hosts);
  if (spans == topologies.end()) return {};
  if (sweep.backends.empty()) sweep.backends = own;
  for (const std::string& backend : sweep.backends) {
    if (harness::backend_of(backend) == harness::kOwnBackend) continue;
    return error(Code::unavailable,
                 "backend '{}' with --transports {}: the hosts are pretended, and its ranks would share the memory of "
                 "this machine: --backends {}",
                 backend, spans->transport->name, harness::kOwnBackend);
  }
  return {};
}

void set_transport(const std::string& name, harness::SessionSpec& spec) {
  spec.transport = name;
  spec.transport_directories = transport_directories();
}

nlohmann::json list_of_transports() {
  using nlohmann::json;
  json list = json::array();
  for (const ListedTransport& one : list_transports(transport_directories())) {
    if (!one.row.is_ok()) {
      list.push_back({{"name", one.name}, {"note", one.row.status().message()}, {"available", false}});
      continue;
    }
    const Transport& row = *one.row.value();
    json serves = json::array();
    for (const RanksAs ranks_as : harness::rank_kinds()) {
      if (harness::serves(row, ranks_as)) serves.push_back(to_string(ranks_as));
    }
    std::string note = row.note;
    const Result<std::string> devices = harness::devices_of(row, transport_directories());
    if (!devices.is_ok()) {
      list.push_back({{"name", one.name}, {"note", devices.status().message()}, {"available", false}});
      continue;
    }
    if (!devices.value().empty()) note += fmt::format("; {}", devices.value());
    if (!one.path.empty()) note += fmt::format("; {}", one.path);
    list.push_back({{"name", one.name},
                    {"note", std::move(note)},
                    {"available", true},
                    {"serves", std::move(serves)},
                    {"addresses_peers", row.addresses_peers}});
  }
  return list;
}

}  // namespace tutti::program
