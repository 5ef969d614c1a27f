// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/topology.h"

#include <algorithm>
#include <utility>

#include "harness/cases/dealt_ranks.h"
#include "harness/cases/transports.h"
#include "harness/text/counted.h"
#include "impl/algorithms/algorithm.h"
#include "impl/execute/reach.h"
#include "impl/execute/resources.h"
#include "impl/schedule/bind.h"
#include "impl/transports/peer_memory.h"
#include "impl/types/names.h"

namespace tutti::harness::cases {
namespace {

/// That ranks can be on the hosts that are named.
Status check_named_hosts(const TopologySpec& spec, const Transport& transport, int ranks) {
  if (spec.options.hosts.empty()) return {};
  const std::string text = shown(to_text(spec.options.hosts));
  if (spec.options.pretended_hosts > 0) {
    return error(Code::invalid_argument, "--pretend-hosts: has no meaning with --hosts {}, which are real ones", text);
  }
  if (!spec.ranks_as->is_process) {
    return error(Code::invalid_argument, "--hosts: '{}' with {}: did you mean --ranks-as processes?", text,
                 to_string(spec.ranks_as));
  }
  if (const int slots = slots_of(spec.options.hosts); ranks > slots) {
    return error(Code::invalid_argument, "--ranks: {} on {}, which have room for {}: 1 to {}, did you mean {}?", ranks,
                 text, slots, slots, slots);
  }
  if (transport.spans_hosts) return {};
  return error(Code::invalid_argument,
               "--hosts: '{}' with transport {}, whose ranks share memory: did you mean --transports tcp?", text,
               transport.name);
}

/// That ranks can be on as many hosts as are pretended.
Status check_pretended_hosts(const TopologySpec& spec, const Transport& transport, int ranks) {
  const int hosts = spec.options.pretended_hosts;
  if (hosts == 0) return {};
  if (!transport.spans_hosts) {
    return error(Code::invalid_argument,
                 "--pretend-hosts: '{}' has no meaning with transport {}, whose ranks share memory: did you mean "
                 "--transports tcp?",
                 hosts, transport.name);
  }
  if (hosts <= ranks) return {};
  return error(Code::invalid_argument, "--pretend-hosts: '{}' with {}: 1 to {} hosts, did you mean {}?", hosts,
               counted(static_cast<std::size_t>(ranks), "rank"), ranks, ranks);
}

/// That what is asked fits what runs the ranks.
Status check_options(const Topology& topology) {
  Conditions values;
  values.topology = topology.asked.options;
  return check_conditions(
      topology_options(), values,
      {.ranks_as = topology.asked.ranks_as, .ranks_on = topology.ranks_on, .ranks = topology.ranks()});
}

/// Requires: the checks of hosts above.
Hosts hosts_of(const TopologySpec& spec, const Transport& transport, int ranks) {
  if (!transport.spans_hosts) return Hosts::in_blocks(ranks, 1);
  if (!spec.options.hosts.empty()) return dealt_to(spec.options.hosts, ranks);
  return Hosts::in_blocks(ranks, spec.options.pretended_hosts > 0 ? spec.options.pretended_hosts : ranks);
}

}  // namespace

TopologySpec topology_spec_of(const Cell& cell, const Conditions& conditions) {
  return {.ranks_as = cell.ranks_as,
          .transport = cell.transport,
          .options = conditions.topology,
          .table = conditions.selection.table};
}

int least_ranks_of(const TopologySpec& spec) { return std::max({1, spec.options.pretended_hosts, spec.options.gpus}); }

RanksPlace Topology::place() const {
  if (on_devices()) return RanksPlace::device;
  return spans_hosts() ? RanksPlace::several_hosts : RanksPlace::one_host;
}

DomainShape Topology::domain_shape(std::size_t heap_bytes) const {
  DomainShape shape = transport->shape(ranks(), hosts.count(), heap_bytes);
  for (std::size_t host = 0; host < host_names.size(); ++host) {
    shape.ranks_on.push_back(static_cast<int>(hosts.ranks_on(static_cast<int>(host)).size()));
  }
  return shape;
}

std::size_t Topology::shared_bytes(std::size_t heap_bytes) const {
  return transport->shared_bytes(domain_shape(heap_bytes), ranks_in(asked.ranks_as));
}

Result<Topology> topology_of(const TopologySpec& spec, int ranks, std::span<const std::string> folders) {
  const Transport* transport = &best_transport(ranks_in(spec.ranks_as));
  if (!spec.transport.empty()) {
    TUTTI_ASSIGN_OR_RETURN(transport, transport_for(spec.transport, spec.ranks_as, folders));
  }
  TUTTI_RETURN_IF_ERROR(check_named_hosts(spec, *transport, ranks));
  TUTTI_RETURN_IF_ERROR(check_pretended_hosts(spec, *transport, ranks));
  Topology topology{.asked = spec,
                    .transport = transport,
                    .hosts = hosts_of(spec, *transport, ranks),
                    .host_names = {},
                    .ranks_on = spec.ranks_as->is_on_device ? RanksOn::shared_device
                                : transport->has_gpu_each   ? RanksOn::own_device
                                                            : RanksOn::cores};
  TUTTI_RETURN_IF_ERROR(check_options(topology));
  // The hosts that have no rank are at the end of the list.
  for (std::size_t host = 0; host < spec.options.hosts.size() && std::cmp_less(host, topology.hosts.count()); ++host) {
    topology.host_names.push_back(spec.options.hosts[host].name);
  }
  return topology;
}

Result<const Topology*> Topologies::of(const Cell& cell) {
  std::tuple key(cell.ranks, cell.ranks_as, cell.transport);
  auto found = made_.find(key);
  if (found == made_.end()) {
    TUTTI_ASSIGN_OR_RETURN(Topology made, topology_of(topology_spec_of(cell, conditions_), cell.ranks, folders_));
    found = made_.emplace(std::move(key), std::move(made)).first;
  }
  return &found->second;
}

Problem problem_on_hosts(const Case& one, const Topology& topology) {
  Problem problem = one.problem();
  if (topology.spans_hosts()) {
    problem.ranks_per_host = topology.hosts.ranks_per_host();
  } else if (!topology.on_devices()) {
    problem.ranks_per_cache = topology.asked.options.ranks_per_cache;
  }
  return problem;
}

bool is_flat_on_hosts(const Case& one, const Topology& topology) {
  const Hosts& hosts = topology.hosts;
  if (hosts.count() == 1 || hosts.count() == hosts.ranks() || hosts.ranks_per_host() > 1) return false;
  const auto algorithm = find_tuned(one.collective, one.algorithm);
  return algorithm.is_ok() && algorithm.value().algorithm->is_by_hosts;
}

Status stays_on_hosts(const Case& one, const Topology& topology) {
  if (!topology.spans_hosts()) return {};
  TUTTI_ASSIGN_OR_RETURN(const TunedAlgorithm algorithm, find_tuned(one.collective, one.algorithm));
  Problem problem = problem_on_hosts(one, topology);
  problem.collective = base_of(problem.collective);
  const Schedule schedule = schedule_of(algorithm, problem);
  const DomainShape shape = shape_across_hosts(one.ranks, topology.hosts.count(), 0);
  const auto bound = bind(schedule, {.count = has_counts(one.collective) ? 1 : one.count,
                                     .dtype = one.dtype,
                                     .op = one.op,
                                     .is_in_place = one.is_in_place,
                                     .buffers = one.buffers,
                                     .resources = resources_of(shape)});
  TUTTI_RETURN_IF_ERROR(bound.status());
  if (check_reach(schedule, bound.value(), topology.hosts).is_ok()) return {};
  return error(Code::unavailable, "{} {}, which touches memory of other hosts{}", to_string(one.collective),
               one.algorithm,
               schedule.shape.scratch_units > 0 && !schedule.shape.exposes_input && !schedule.shape.exposes_output
                   ? " beyond what a flag line holds"
                   : "");
}

bool may_copy_once(const Case& one, const Topology& topology) {
  static const bool between_processes = expect_peer_memory().is_ok();
  if (topology.place() != RanksPlace::one_host || !topology.transport->addresses_peers) return false;
  if (one.buffers == Buffers::shared || has_counts(one.collective) || one.op == Op::premul_sum) return false;
  return between_processes || !topology.asked.ranks_as->is_process;
}

Chosen choice_for(const Case& one, const Topology& topology, int cores) {
  return choose({.problem = problem_on_hosts(one, topology),
                 .buffers = one.buffers,
                 .cores = topology.place() == RanksPlace::one_host ? cores : one.ranks,
                 .bytes = one.bytes,
                 .on = topology.place(),
                 .table = topology.asked.table.get(),
                 .has_single_copies = may_copy_once(one, topology)});
}

std::string chosen_algorithm(const Case& one, const Topology& topology, int cores) {
  const Chosen chosen = choice_for(one, topology, cores);
  return to_text({.algorithm = chosen.algorithm, .tuning = chosen.tuning});
}

bool is_chosen_by_formula(const Case& one, const Topology& topology, int cores) {
  const Chosen chosen = choice_for(one, topology, cores);
  return !chosen.is_measured && chosen.simulated_on.empty();
}

}  // namespace tutti::harness::cases
