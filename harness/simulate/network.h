// SPDX-License-Identifier: Apache-2.0
// How nodes are joined, where the ranks' nodes lie in that, and which parts are slow. Nodes and leaves have the names
// of acceptance's files: node1, node2, ... and leaves A, B, ...
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/floors.h"

namespace tutti::harness::simulate {

enum class Shape : std::uint8_t {
  one_switch,  ///< nothing is shared but the interfaces
  fat_tree,    ///< leaf switches with uplinks, all uplinks of a leaf as one
  dragonfly,   ///< groups of nodes, and links between any two groups
  rails,       ///< a leaf switch for each rail of a group of nodes; other rails are reached through its uplinks
  torus,       ///< links to the next nodes in each dimension; messages go one dimension after the other
};

/// Which node of the machine has the h-th ranks_per_node ranks.
enum class Placing : std::uint8_t {
  contiguous,  ///< node h
  strided,     ///< leaves take turns: neighbours lie on different leaves
  random,      ///< drawn from the seed
};

struct Network {
  Shape shape = Shape::one_switch;
  int nodes = 0;     ///< of the machine; 0: as many as the ranks need
  int leaf = 0;      ///< nodes of a leaf switch, or of a group
  double taper = 1;  ///< fat tree, rails: what enters a leaf by what leaves it
  double links = 1;  ///< dragonfly: between two groups, each as fast as an interface
  double hop = 0;    ///< ns more for a message that leaves its leaf or group; in a torus for each link but the first
  std::vector<int> sides;  ///< torus
  Placing placing = Placing::contiguous;
  std::uint64_t seed = 1;

  [[nodiscard]] bool has_leaves() const {
    return shape == Shape::fat_tree || shape == Shape::dragonfly || shape == Shape::rails;
  }
};

enum class SlowPart : std::uint8_t {
  node,  ///< its processors and memory
  nic,   ///< its interfaces, both directions
  nic_out,
  nic_in,
  link,        ///< between two nodes, both directions
  link_out,    ///< from the first to the second
  uplink,      ///< of a leaf, both directions
  uplink_out,  ///< what leaves the leaf
  rail,        ///< interfaces of one number on all nodes
};

struct SlowFault {
  SlowPart part = SlowPart::node;
  int first = 0;     ///< node, leaf or rail, from 0
  int second = 0;    ///< the other node of a link
  double share = 0;  ///< of its speed that is lost, less than 1
};

[[nodiscard]] std::string node_text(int node);
[[nodiscard]] std::string leaf_text(int leaf);

}  // namespace tutti::harness::simulate
