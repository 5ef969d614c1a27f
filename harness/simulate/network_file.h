// SPDX-License-Identifier: Apache-2.0
// The parts of a machine's file that say how its nodes are joined, and which of them are slow:
//
//   [network]
//   shape = "fat-tree"         # switch, fat-tree, dragonfly, rails, torus
//   nodes = 64                 # of the machine; as many as the ranks need if it is left out
//   leaf = 16                  # nodes per leaf switch or group: fat-tree, dragonfly, rails
//   taper = 2                  # what enters a leaf by what leaves it: fat-tree, rails
//   links = 4                  # between two groups, each as fast as an interface: dragonfly
//   sides = [8, 8]             # torus, in the place of nodes
//   hop = 300                  # ns more between leaves or groups; in a torus for each link but the first
//   placement = "contiguous"   # or strided, random
//   seed = 1                   # of random
//
//   [[fault]]
//   what = "nic-out"           # node, nic, nic-out, nic-in, link, link-dir, uplink, uplink-dir, rail
//   node = "node17"            # or nodes = ["node22", "node40"] of a link, leaf = "C" of an uplink, rail = 0
//   share = "31%"              # of the speed that is lost
#pragma once

#include <string>

#include "harness/floors.h"
#include "harness/simulate/model.h"
#include "harness/text/toml.h"
#include "impl/types/status.h"

namespace tutti::harness::simulate {

/// Errors: invalid_argument that names the line.
[[nodiscard]] Status read_network(const toml::node& node, Network& network);
/// Requires: the rest of the machine is read. Errors: as read_network.
[[nodiscard]] Status read_faults(const toml::node& node, Machine& machine);
/// Both parts as text; empty if there is nothing to say.
[[nodiscard]] std::string network_toml(const Machine& machine);

}  // namespace tutti::harness::simulate
