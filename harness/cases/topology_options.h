// SPDX-License-Identifier: Apache-2.0
// What a user can ask of where the ranks of a job are, beside what they are and their transport, which a cell says
// (case.h). The options are conditions of a run: each field has a row in the table of topology_options.cc, which is a
// part of conditions(). What they come to is a Topology (topology.h).
//
// A new one is a field of TopologyOptions, a row of that table, and the code that obeys it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "harness/floors.h"
#include "impl/types/host_list.h"
#include "impl/types/status.h"

namespace tutti::harness::cases {

/// Which cores a rank may run on.
enum class Bind : std::uint8_t {
  core,  ///< rank r to the r-th allowed core
  numa,  ///< ranks in equal shares, in their order, to the allowed cores of each NUMA node
  none,  ///< every rank to all allowed cores
};

/// What runs ranks that are thread blocks.
enum class RunsOn : std::uint8_t {
  gpu,   ///< the first one that may be used, or several from that on
  host,  ///< threads of this process, which run the kernels' text
};

[[nodiscard]] std::string_view to_string(Bind bind);
[[nodiscard]] std::string_view to_string(RunsOn device);
/// Errors: invalid_argument naming the text, the nearest right name and all names.
[[nodiscard]] Result<Bind> parse_bind(std::string_view text);
[[nodiscard]] Result<RunsOn> parse_runs_on(std::string_view text);

struct TopologyOptions {
  std::optional<Bind> bind = {};  ///< empty: core if every rank has one, else none
  RunsOn device = RunsOn::gpu;    ///< of ranks that are thread blocks
  int lanes = 0;                  ///< and how many blocks each of them has; 0: what suits the device
  int block_threads = 0;          ///< and threads of a block; 0: what suits the device
  int gpus = 1;                   ///< and over how many devices they are dealt
  int pretended_hosts = 0;        ///< of ranks that share no memory, all on this machine; 0: the transport's
  /// Of one host: consecutive ranks that share a cache; 0: not told, and the machine shows no regular caches.
  int ranks_per_cache = 0;
  std::vector<NamedHost> hosts = {};  ///< that the ranks are on; empty: this machine

  bool operator==(const TopologyOptions&) const = default;
};

}  // namespace tutti::harness::cases
