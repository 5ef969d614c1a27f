// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/transports.h"

#include <algorithm>
#include <cstdlib>

#include "harness/cases/dealt_ranks.h"
#include "impl/communicator/communicator.h"
#include "impl/device/opener.h"
#include "impl/execute/reach.h"
#include "impl/schedule/bind.h"
#include "impl/transports/hosts.h"
#include "impl/transports/loader.h"

namespace tutti::harness::cases {

const std::string& usual_transport(RanksAs ranks_as) {
  static const std::string of_processes = best_transport(ranks_in(RanksAs::processes)).name;
  static const std::string of_threads = best_transport(ranks_in(RanksAs::threads)).name;
  return ranks_in(ranks_as) == RanksIn::own_processes ? of_processes : of_threads;
}

bool serves(const Transport& transport, RanksAs ranks_as) {
  const bool are_apart = ranks_as == RanksAs::blocks && transport.spans_hosts;  // one device has all blocks
  return transport.serves_ranks(ranks_in(ranks_as)) && !are_apart;
}

const std::string& usual_transport_between_hosts() {
  static const std::string name = [] {
    const auto table = built_in_transports();
    const auto spans = [](const Transport* one) {
      return one->spans_hosts && one->serves_ranks(ranks_in(RanksAs::processes));
    };
    const auto found = std::ranges::find_if(table, spans);
    TUTTI_ASSERT(found != table.end(), "no transport spans hosts");
    return std::string((*found)->name);
  }();
  return name;
}

Result<const Transport*> transport_for(std::string_view name, RanksAs ranks_as, std::span<const std::string> folders) {
  TUTTI_ASSIGN_OR_RETURN(const Transport* const transport, find_transport(name, folders));
  if (serves(*transport, ranks_as)) return transport;
  return error(Code::invalid_argument, "transport '{}' with {}: did you mean '{}'?", name, to_string(ranks_as),
               usual_transport(ranks_as));
}

Result<std::string> devices_of(const Transport& transport, std::span<const std::string> folders) {
  if (transport.devices == nullptr) return std::string();
  TUTTI_ASSIGN_OR_RETURN(std::string devices, transport.devices({.environment = std::getenv}));
  if (transport.is_on_gpus) TUTTI_RETURN_IF_ERROR(find_kernels(folders).status());
  return devices;
}

Status is_usable_here(const Transport& transport, std::span<const std::string> folders) {
  const Status status = devices_of(transport, folders).status();
  if (status.is_ok()) return status;
  return error(status.code(), "transport {}: {}", transport.name, status.message());
}

Hosts layout_for(const Transport& transport, int ranks, const Conditions& conditions) {
  if (!transport.spans_hosts) return Hosts::in_blocks(ranks, 1);
  if (!conditions.hosts.empty()) {
    return dealt_to(conditions.hosts, ranks);
  }
  return Hosts::in_blocks(ranks, conditions.pretended_hosts > 0 ? std::min(conditions.pretended_hosts, ranks) : ranks);
}

int hosts_for(const Transport& transport, int ranks, const Conditions& conditions) {
  return layout_for(transport, ranks, conditions).count();
}

namespace {
Hosts layout_of(const Case& one, const Conditions& conditions) {
  const auto transport = find_transport(one.transport, {});
  return transport.is_ok() ? layout_for(*transport.value(), one.ranks, conditions) : Hosts::in_blocks(one.ranks, 1);
}
}  // namespace

int hosts_of(const Case& one, const Conditions& conditions) { return layout_of(one, conditions).count(); }

Problem problem_on_hosts(const Case& one, const Conditions& conditions) {
  Problem problem = one.problem();
  const Hosts layout = layout_of(one, conditions);
  if (layout.count() > 1) problem.ranks_per_host = layout.ranks_per_host();
  return problem;
}

bool is_flat_on_hosts(const Case& one, const Conditions& conditions) {
  const Hosts layout = layout_of(one, conditions);
  if (layout.count() == 1 || layout.count() == layout.ranks() || layout.ranks_per_host() > 1) return false;
  const auto algorithm = find_algorithm(one.collective, one.algorithm);
  return algorithm.is_ok() && algorithm.value()->is_by_hosts;
}

Status stays_on_hosts(const Case& one, const Conditions& conditions) {
  const int hosts = hosts_of(one, conditions);
  if (hosts == 1) return {};
  TUTTI_ASSIGN_OR_RETURN(const Algorithm* const algorithm, find_algorithm(one.collective, one.algorithm));
  const Hosts layout = layout_of(one, conditions);
  Problem problem = problem_on_hosts(one, conditions);
  problem.collective = base_of(problem.collective);
  const Schedule schedule = schedule_of(*algorithm, problem);
  const DomainShape shape = shape_across_hosts(one.ranks, hosts, 0);
  const auto bound = bind(schedule, {.count = has_counts(one.collective) ? 1 : one.count,
                                     .dtype = one.dtype,
                                     .op = one.op,
                                     .is_in_place = one.is_in_place,
                                     .buffers = one.buffers,
                                     .resources = {.slots = shape.slots,
                                                   .slot_bytes = static_cast<std::int64_t>(shape.slot_bytes),
                                                   .scratch_bytes = static_cast<std::int64_t>(shape.scratch_bytes)}});
  TUTTI_RETURN_IF_ERROR(bound.status());
  if (check_reach(schedule, bound.value(), layout).is_ok()) return {};
  return error(Code::unavailable, "{} {}, which touches memory of other hosts{}", to_string(one.collective),
               one.algorithm,
               schedule.shape.scratch_units > 0 && !schedule.shape.exposes_input && !schedule.shape.exposes_output
                   ? " beyond what a flag line holds"
                   : "");
}

bool have_gpus_each(std::span<const std::string> transports, std::span<const std::string> folders) {
  const auto is_on_gpus = [&](const std::string& name) {
    const auto transport = find_transport(name, folders);
    return transport.is_ok() && transport.value()->is_on_gpus;
  };
  return !transports.empty() && std::ranges::all_of(transports, is_on_gpus);
}

bool runs_on_devices(const Case& one) {
  if (one.ranks_as == RanksAs::blocks) return true;
  const auto transport = find_transport(one.transport, {});
  return transport.is_ok() && transport.value()->is_on_gpus;
}

std::string chosen_algorithm(const Case& one, const Conditions& conditions, int cores) {
  if (hosts_of(one, conditions) > 1) {
    return std::string(choose_across_hosts(problem_on_hosts(one, conditions), one.bytes).name);
  }
  if (runs_on_devices(one)) return std::string(choose_on_devices(one.problem(), one.buffers, one.bytes).name);
  return std::string(choose_algorithm(one.problem(), one.buffers, cores, one.bytes).name);
}

bool is_chosen_by_formula(const Case& one, const Conditions& conditions, int cores) {
  const RanksPlace on = runs_on_devices(one)            ? RanksPlace::device
                        : hosts_of(one, conditions) > 1 ? RanksPlace::several_hosts
                                                        : RanksPlace::one_host;
  return !is_choice_measured(one.problem(), one.buffers, cores, one.bytes, on);
}

}  // namespace tutti::harness::cases
