// SPDX-License-Identifier: Apache-2.0
#include "src/accept_nodes.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include "harness/accept/cluster_file.h"
#include "harness/accept/leaves.h"
#include "harness/accept/on_leaves.h"
#include "harness/accept/pretend.h"
#include "harness/accept/rails.h"
#include "harness/cases/sweep.h"
#include "harness/cases/transports.h"
#include "harness/text/read_file.h"
#include "impl/types/names.h"
#include "impl/types/number.h"
#include "src/options.h"
#include "src/references.h"
#include "src/transports.h"

namespace tutti::program {
namespace {

namespace accept = harness::accept;

/// `16`, or the name of a file.
Result<std::vector<int>> leaves_of(const std::string& text, const std::vector<std::string>& names) {
  const bool is_number = text.find_first_not_of("0123456789") == text.npos;
  if (is_number) {
    TUTTI_ASSIGN_OR_RETURN(const int size, parse_number(text, "a number of nodes", 1, 1'000'000));
    return accept::leaves_of_size(static_cast<int>(names.size()), size);
  }
  TUTTI_ASSIGN_OR_RETURN(const std::string content, harness::read_file(text, harness::kMostInList));
  auto leaves = accept::leaves_from_file(content, names);
  if (leaves.is_ok()) return leaves;
  return error(leaves.status().code(), "'{}': {}", shown(text), leaves.status().message());
}

void put_on(std::vector<int> leaves, OwnedCrew& owned) {
  if (owned.below == nullptr) owned.below = std::move(owned.crew);
  owned.crew = std::make_unique<accept::OnLeaves>(*owned.below, std::move(leaves));
}

/// The crew on the leaves that --leaves says, if it does.
Result<OwnedCrew> on_leaves(OwnedCrew owned, const AcceptRequest& request) {
  if (request.leaves.empty()) return owned;
  std::vector<std::string> names;
  for (int node = 0; node < owned.crew->nodes(); ++node) names.push_back(owned.crew->name_of(node));
  TUTTI_ASSIGN_OR_RETURN(std::vector<int> leaves, of_flag("--leaves", leaves_of(request.leaves, names)));
  put_on(std::move(leaves), owned);
  owned.are_leaves_known = true;
  return owned;
}

Result<PlayedSystem> system_of(const AcceptRequest& request, const accept::AcceptPlan& plan) {
  PlayedSystem system{.backend = request.backend,
                      .transport = request.transport,
                      .window = plan.window,
                      .deadline_times = plan.deadline_times};
  if (system.transport.empty()) system.transport = harness::transport_between_hosts().name;
  constexpr int kMostRanks = 1024;
  TUTTI_ASSIGN_OR_RETURN(
      system.ranks_per_node,
      of_flag("--ranks-per-node", parse_number(request.ranks_per_node, "a number of ranks", 1, kMostRanks)));
  if (system.backend != harness::kOwnBackend) {
    TUTTI_RETURN_IF_ERROR(of_flag("--backend", path_of_backend(system.backend, true)).status());
    TUTTI_ASSIGN_OR_RETURN(Starter starter, of_flag("--backend", starter_of(system.backend)));
    if (starter.command && starter.command->across.empty()) {
      return error(Code::unavailable, "--backend: the start command of '{}' starts no ranks on several hosts",
                   shown(system.backend));
    }
    if (starter.command && request.places.reach.joined != nullptr) {
      return error(Code::invalid_argument,
                   "--backend: '{}' starts the ranks of each group by its mpirun, and these processes are {}'s: start "
                   "`tutti accept --hosts LIST` once, by itself",
                   shown(system.backend), request.places.reach.joined->starter);
    }
    system.starter = std::move(starter);
  }
  TUTTI_ASSIGN_OR_RETURN(const Transport* const transport,
                         of_flag("--transport", harness::transport_for(system.transport, harness::RanksAs::processes,
                                                                       transport_directories())));
  if (transport->spans_hosts) return system;
  return error(Code::invalid_argument, "--transport: '{}' stays within a host: did you mean '{}'?", system.transport,
               harness::transport_between_hosts().name);
}

/// The cluster has these rails only, in their order. Errors: invalid_argument: it has no such rail.
Result<accept::PretendedCluster> with_rails(accept::PretendedCluster cluster, const std::string& text) {
  if (text.empty()) return cluster;
  TUTTI_ASSIGN_OR_RETURN(std::vector<std::string> rails, accept::parse_rails(text));
  if (cluster.rails.empty()) {
    return error(Code::invalid_argument, "the pretended cluster has none: write `rails = [\"{}\"]` into its file",
                 fmt::join(rails, "\", \""));
  }
  std::vector<accept::Fault> faults;
  for (const std::string& name : rails) {
    if (std::ranges::find(cluster.rails, name) == cluster.rails.end()) return unknown_name("rail", name, cluster.rails);
  }
  for (accept::Fault& fault : cluster.faults) {
    if (fault.rail != accept::kNoRail) {
      const auto kept = std::ranges::find(rails, cluster.rails.at(static_cast<std::size_t>(fault.rail)));
      if (kept == rails.end()) continue;
      fault.rail = static_cast<int>(kept - rails.begin());
    }
    faults.push_back(fault);
  }
  cluster.rails = std::move(rails);
  cluster.faults = std::move(faults);
  return cluster;
}

}  // namespace

Result<OwnedCrew> crew_of(const AcceptRequest& request, const accept::AcceptPlan& plan) {
  OwnedCrew owned;
  const bool has_hosts = !request.places.conditions.topology.hosts.empty();
  if (request.pretend.empty() && !has_hosts) {
    return error(Code::invalid_argument, "`tutti accept` needs --hosts LIST, or --pretend FILE for a trial");
  }
  if (has_hosts) {
    if (!request.pretend.empty()) {
      return error(Code::invalid_argument, "--pretend: with --hosts the cluster is a real one; leave one of them out");
    }
    TUTTI_ASSIGN_OR_RETURN(PlayedSystem system, system_of(request, plan));
    owned.left_out = stages_without(system);
    if (!plan.job.words.empty()) owned.left_out.erase("job");  // a command has buffers of its own
    TUTTI_ASSIGN_OR_RETURN(auto on_hosts, HostsCrew::start(request.places, std::move(system)));
    owned.on_hosts = on_hosts.get();
    owned.are_leaves_known = on_hosts->are_leaves_known();
    owned.crew = std::move(on_hosts);
    return on_leaves(std::move(owned), request);
  }
  TUTTI_ASSIGN_OR_RETURN(const std::string text,
                         of_flag("--pretend", harness::read_file(request.pretend, harness::kMostInSuite)));
  auto cluster = accept::cluster_from_toml(text);
  if (!cluster.is_ok()) {
    return error(cluster.status().code(), "--pretend: '{}': {}", shown(request.pretend), cluster.status().message());
  }
  TUTTI_ASSIGN_OR_RETURN(accept::PretendedCluster kept,
                         of_flag("--rails", with_rails(std::move(cluster).value(), request.rails)));
  owned.is_pretended = true;
  if (!plan.job.words.empty()) owned.left_out["job"] = "a pretended cluster runs no command";
  owned.are_leaves_known = kept.tells_leaves;
  owned.pretended = text;
  owned.crew = std::make_unique<accept::PretendedCrew>(std::move(kept));
  if (!owned.are_leaves_known) {
    std::vector<int> one(static_cast<std::size_t>(owned.crew->nodes()), 0);
    put_on(std::move(one), owned);
  }
  return on_leaves(std::move(owned), request);
}

}  // namespace tutti::program
