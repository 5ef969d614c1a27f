// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a job are. TopologySpec is what a user asks. Topology is what that comes to for a number of ranks:
// their transport, the host of each, what runs them, and what the choice of an algorithm needs to know. It is made once
// per job by topology_of, which says why it cannot be. What runs, measures or reports a job reads it there.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "harness/cases/case.h"
#include "harness/cases/conditions.h"
#include "harness/cases/ranks_as.h"
#include "impl/communicator/communicator.h"
#include "impl/communicator/selection_table.h"
#include "impl/transports/domain.h"
#include "impl/transports/hosts.h"
#include "impl/transports/transport.h"
#include "impl/types/status.h"

namespace tutti::harness::cases {

/// What a user asks of where the ranks are.
struct TopologySpec {
  RanksAs ranks_as = RanksAs::processes;
  std::string transport = {};  ///< empty: the usual one of these ranks
  TopologyOptions options = {};
  std::shared_ptr<const SelectionTable> table = nullptr;  ///< by which `auto` chooses; null: the one that is built in
};
/// What is asked of the ranks of a cell.
[[nodiscard]] TopologySpec topology_spec_of(const Cell& cell, const Conditions& conditions);
/// The fewest ranks that can be where it asks them to be.
[[nodiscard]] int least_ranks_of(const TopologySpec& spec);

struct Topology {
  TopologySpec asked;
  const Transport* transport;           ///< loaded; it stays so
  Hosts hosts;                          ///< the host of each rank
  std::vector<std::string> host_names;  ///< [host] of hosts that were named; empty: all ranks are on this machine
  RanksOn ranks_on;

  [[nodiscard]] int ranks() const { return hosts.ranks(); }
  [[nodiscard]] bool spans_hosts() const { return hosts.count() > 1; }
  /// Whether ranks are thread blocks: of a GPU, or of threads that stand for one.
  [[nodiscard]] bool on_devices() const { return ranks_on != RanksOn::cores; }
  /// Whether the buffers of the own ranks lie in the memory of GPUs.
  [[nodiscard]] bool has_gpu_memory() const { return on_devices() && asked.options.device == RunsOn::gpu; }
  /// What the choice of an algorithm asks.
  [[nodiscard]] RanksPlace place() const;
  /// The domain of the job: the same in the launcher, which makes its memory, and in the ranks. `heap_bytes`: what each
  /// rank wants for shared buffers.
  [[nodiscard]] DomainShape domain_shape(std::size_t heap_bytes) const;
  /// Bytes of the memory that the launcher makes for it; 0: none.
  [[nodiscard]] std::size_t shared_bytes(std::size_t heap_bytes) const;
};

/// Requires: ranks >= 1. `folders` may have transports that are shared objects. Errors: those of transport_for;
/// invalid_argument naming the option that does not fit, and one that does.
[[nodiscard]] Result<Topology> topology_of(const TopologySpec& spec, int ranks, std::span<const std::string> folders);

/// The topologies of cells of one run: one for each number of ranks and transport.
class Topologies {
 public:
  /// Both outlive it.
  Topologies(const Conditions& conditions, std::span<const std::string> folders)
      : conditions_(conditions), folders_(folders) {}

  /// That of the job which runs the cell. It lives as long as this. Errors: those of topology_of.
  [[nodiscard]] Result<const Topology*> of(const Cell& cell);

 private:
  const Conditions& conditions_;
  std::span<const std::string> folders_;
  std::map<std::tuple<int, RanksAs, std::string>, Topology> made_;
};

// What follows is of a case that is run there: `topology` is that of its job.

/// What is run, with the number of ranks on each host if there are several, else with that of a cache if it is known.
[[nodiscard]] Problem problem_on_hosts(const Case& one, const Topology& topology);
/// Whether its algorithm is for hosts of equally many ranks, and takes each rank for a host of its own since they are
/// not.
[[nodiscard]] bool is_flat_on_hosts(const Case& one, const Topology& topology);
/// Whether no rank of the case would touch memory of another host. Errors: unavailable, naming the algorithm.
[[nodiscard]] Status stays_on_hosts(const Case& one, const Topology& topology);
/// What `auto` chooses for the case; `cores` as for choose_algorithm.
[[nodiscard]] Chosen choice_for(const Case& one, const Topology& topology, int cores);
/// Its text: "two_shot+64K".
[[nodiscard]] std::string chosen_algorithm(const Case& one, const Topology& topology, int cores);
/// Whether that is from the cost formula, since nothing was measured on such ranks.
[[nodiscard]] bool is_chosen_by_formula(const Case& one, const Topology& topology, int cores);

}  // namespace tutti::harness::cases
