// SPDX-License-Identifier: Apache-2.0
#include "src/transports.h"

#include <algorithm>
#include <array>

#include "harness/backends/loader.h"
#include "harness/cases/backend_name.h"
#include "harness/cases/suite.h"
#include "harness/cases/transports.h"
#include "harness/text/counted.h"
#include "impl/transports/loader.h"
#include "impl/types/host_list.h"
#include "impl/types/names.h"

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

namespace {

Status check_named_hosts(const harness::Sweep& sweep, const harness::Conditions& conditions) {
  if (conditions.hosts.empty()) return {};
  const std::string text = shown(to_text(conditions.hosts));
  if (conditions.pretended_hosts > 0) {
    return error(Code::invalid_argument, "--pretend-hosts: has no meaning with --hosts {}, which are real ones", text);
  }
  if (sweep.ranks_as != RanksAs::processes) {
    return error(Code::invalid_argument, "--hosts: '{}' with {}: did you mean --ranks-as processes?", text,
                 to_string(sweep.ranks_as));
  }
  for (const int ranks : sweep.ranks) {
    if (const int slots = slots_of(conditions.hosts); ranks > slots) {
      return error(Code::invalid_argument, "--ranks: {} on {}, which have room for {}: 1 to {}, did you mean {}?",
                   ranks, text, slots, slots, slots);
    }
  }
  for (const std::string& name : transports_of(sweep)) {
    TUTTI_ASSIGN_OR_RETURN(const Transport* const transport,
                           harness::transport_for(name, sweep.ranks_as, transport_directories()));
    if (transport->spans_hosts) continue;
    return error(Code::invalid_argument,
                 "--hosts: '{}' with transport {}, whose ranks share memory: did you mean --transports tcp?", text,
                 name);
  }
  return {};
}

}  // namespace

Status check_hosts(const harness::Sweep& sweep, const harness::Conditions& conditions) {
  TUTTI_RETURN_IF_ERROR(check_named_hosts(sweep, conditions));
  const int hosts = conditions.pretended_hosts;
  if (hosts == 0) return {};
  for (const std::string& name : transports_of(sweep)) {
    TUTTI_ASSIGN_OR_RETURN(const Transport* const transport,
                           harness::transport_for(name, sweep.ranks_as, transport_directories()));
    if (transport->spans_hosts) continue;
    return error(Code::invalid_argument,
                 "--pretend-hosts: '{}' has no meaning with transport {}, whose ranks share memory: did you mean "
                 "--transports tcp?",
                 hosts, name);
  }
  for (const int ranks : sweep.ranks) {
    if (hosts <= ranks) continue;
    return error(Code::invalid_argument, "--pretend-hosts: '{}' with {}: 1 to {} hosts, did you mean {}?", hosts,
                 harness::counted(static_cast<std::size_t>(ranks), "rank"), ranks, ranks);
  }
  return {};
}

Status check_cell_on_hosts(const harness::Case& one, const harness::Conditions& conditions) {
  harness::Sweep sweep;
  sweep.ranks = {one.ranks};
  sweep.ranks_as = one.ranks_as;
  sweep.transports = {one.transport};
  const Status status = check_hosts(sweep, conditions);
  return status.is_ok() ? status : error(status.code(), "cell '{}': {}", cell_id(one), status.message());
}

Status check_devices(const harness::Sweep& sweep, const harness::Conditions& conditions) {
  if (!conditions.hosts.empty()) return {};
  for (const std::string& name : sweep.transports) {
    TUTTI_ASSIGN_OR_RETURN(const Transport* const transport,
                           harness::transport_for(name, sweep.ranks_as, transport_directories()));
    if (transport->is_on_gpus && conditions.device == harness::RunsOn::host) continue;
    TUTTI_RETURN_IF_ERROR(harness::is_usable_here(*transport, transport_directories()));
  }
  return {};
}

Status settle_across_hosts(harness::Sweep& sweep, const harness::Conditions& conditions) {
  for (const std::string& name : transports_of(sweep)) {
    const auto transport = harness::transport_for(name, sweep.ranks_as, transport_directories());
    TUTTI_RETURN_IF_ERROR(transport.status());
    const auto spans = [&](int ranks) { return harness::hosts_for(*transport.value(), ranks, conditions) > 1; };
    if (conditions.hosts.empty() && std::ranges::none_of(sweep.ranks, spans)) continue;
    if (sweep.backends.empty()) sweep.backends = {std::string(harness::kOwnBackend)};
    for (const std::string& backend : sweep.backends) {
      if (harness::backend_of(backend) == harness::kOwnBackend || !conditions.hosts.empty()) continue;
      return error(
          Code::unavailable,
          "backend '{}' with --transports {}: the hosts are pretended, and its ranks would share the memory of "
          "this machine: --backends {}",
          backend, name, harness::kOwnBackend);
    }
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
    for (const RanksAs ranks_as : {RanksAs::processes, RanksAs::threads, RanksAs::tasks, RanksAs::blocks}) {
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
