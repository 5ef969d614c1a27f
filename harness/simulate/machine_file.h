// SPDX-License-Identifier: Apache-2.0
// A machine as a user writes it. Times are in nanoseconds, sizes in bytes. A table is a list of [bytes, ns] with
// straight lines between them, or one time for every size.
//
//   name = "example"
//   ranks_per_node = 8
//
//   [near]                     # messages between ranks of a node
//   latency = 200
//   send = [[0, 100], [1000000, 50100]]
//   receive = 100
//   wire = [[0, 0], [1000000, 50000]]
//
//   [far]                      # messages between nodes
//   latency = 1200
//   gap = 50
//   send = 300
//   receive = 300
//   wire = [[0, 0], [1000000, 40000]]
//   eager = 16384              # a larger message waits for `handshake` more; both or none of the two
//   handshake = 2400
//
//   [node]                     # what a rank does in its node's memory
//   flag = 150
//   reduce = [[0, 0], [1000000, 50000]]
//   copy = [[0, 0], [1000000, 50000]]
//   read = [[0, 60], [1000000, 50060]]
//
//   [cache]                    # the same between ranks that share a cache, with `ranks_per_cache = 4` at the top
//   flag = 50
//   read = [[0, 20], [1000000, 50020]]
//
// `look = 10` in [node] and [cache]: what each flag of a WAIT for several ranks takes; without it nothing.
// `rails = 4` beside ranks_per_node: interfaces of a node, which its ranks share in turn; without it each rank has one.
// network_file.h shows [network] and [[fault]]. [node] is needed, and [near] or [far] or both: ranks_per_node decides
// which messages are near. A table has all of its keys but `gap`, `eager` and `handshake`.
#pragma once

#include <string>
#include <string_view>

#include "harness/floors.h"
#include "harness/simulate/model.h"
#include "impl/types/status.h"

namespace tutti::harness::simulate {

inline constexpr int kMostRanksOfMachine = 100'000;

/// Errors: invalid_argument that names the line, what is wrong there, and the nearest right.
[[nodiscard]] Result<Machine> machine_from_toml(std::string_view text);
/// A text that machine_from_toml reads back.
[[nodiscard]] std::string machine_toml(const Machine& machine);

}  // namespace tutti::harness::simulate
