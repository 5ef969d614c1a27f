// SPDX-License-Identifier: Apache-2.0
// LogGP with tables over the size of a message: what a step of a schedule costs. All times are in nanoseconds.
//
// A message occupies the sender's processor for `send`. It occupies the sender's network interface for `gap` plus
// `wire`, the receiver's for as long, and the receiver's processor for `receive`. Its last byte arrives `latency` plus
// `wire` after the sender's processor is done with the first. LogGP's parameters are special tables: `send` is o,
// `wire` is (m - 1) G, a line through (1, 0).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include "harness/floors.h"
#include "harness/simulate/network.h"

namespace tutti::harness::simulate {

/// A time for every number of bytes: straight lines between points. It is constant before the first point, and goes on
/// with the last line's slope after the last one.
class SizeTable {
 public:
  struct Point {
    double bytes = 0;
    double ns = 0;
    bool operator==(const Point&) const = default;
  };

  SizeTable() = default;
  /// Requires: bytes rise.
  SizeTable(std::vector<Point> points);            // NOLINT(google-explicit-constructor)
  SizeTable(std::initializer_list<Point> points);  // NOLINT(google-explicit-constructor)
  /// `ns` for 0 bytes, and `per_byte` more for each. Requires: both are at least 0.
  [[nodiscard]] static SizeTable line(double ns, double per_byte);

  [[nodiscard]] double at(double bytes) const;
  [[nodiscard]] const std::vector<Point>& points() const { return points_; }

 private:
  std::vector<Point> points_;
};

/// How messages travel between two ranks: within a node or between nodes.
struct LinkCosts {
  double latency = 0;
  double gap = 0;     ///< after a message, before the interface takes the next one; not within a node
  SizeTable send;     ///< the sender's processor
  SizeTable receive;  ///< the receiver's processor, after the last byte has arrived
  SizeTable wire;     ///< from the first byte's arrival to the last one's
};

struct Model {
  LinkCosts near;    ///< between ranks of a node
  LinkCosts far;     ///< between nodes
  double flag = 0;   ///< from a SIGNAL to the WAIT that sees it, within a node
  double look = 0;   ///< at each flag of a WAIT for several ranks of the node
  SizeTable reduce;  ///< adding one more operand
  SizeTable copy;    ///< storing to one buffer
  SizeTable read;    ///< reading one operand that is another rank's memory
  /// The same between ranks that share a cache, where the machine has several caches in a node.
  struct InCache {
    double flag = 0;
    double look = 0;
    SizeTable read;
  } cache;
  /// A larger message between nodes waits until the receiver's answer is back: `handshake` more before its first byte.
  double eager_bytes = std::numeric_limits<double>::infinity();
  double handshake = 0;
};

/// Where the ranks are: rank r on node r / ranks_per_node.
struct Machine {
  std::string name;
  Model model;
  int ranks_per_node = 1;
  int ranks_per_cache = 0;  ///< of a node's ranks, in their order; 0: a node is one cache
  bool has_near = true;     ///< what messages within a node cost is known
  bool has_far = true;      ///< and what those between nodes do
  int rails = 0;            ///< interfaces of a node, which its ranks share in turn; 0: one for each rank
  Network network;
  std::vector<SlowFault> faults;

  [[nodiscard]] int node_of(int rank) const { return rank / ranks_per_node; }
  [[nodiscard]] bool share_cache(int one, int other) const {
    return ranks_per_cache > 0 && is_near(one, other) &&
           one % ranks_per_node / ranks_per_cache == other % ranks_per_node / ranks_per_cache;
  }
  /// Whether messages of different ranks share an interface or a link, so that their order in time decides.
  [[nodiscard]] bool shares() const {
    return network.shape != Shape::one_switch || (rails > 0 && rails < ranks_per_node);
  }
  [[nodiscard]] bool is_near(int one, int other) const { return node_of(one) == node_of(other); }
};

/// The machine without a file: 8 ranks on a node, an interface of 25 GB/s for each of them. It is an invented machine.
[[nodiscard]] Machine example_machine();

}  // namespace tutti::harness::simulate
