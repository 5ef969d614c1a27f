// SPDX-License-Identifier: Apache-2.0
// Schedules: which nodes play with each other at the same time. A round is a list of transfers. In a round of the
// circle each node has at most one partner. In a ring each node sends to the next one and receives from the one before.
#pragma once

#include <cstddef>
#include <vector>

#include "harness/floors.h"

namespace tutti::harness::accept {

/// The number of a node, leaf or round as an index.
[[nodiscard]] constexpr std::size_t at(int number) { return static_cast<std::size_t>(number); }

/// One direction of a pair.
struct Transfer {
  int sender = 0;
  int receiver = 0;
  friend bool operator==(const Transfer&, const Transfer&) = default;
};
using Round = std::vector<Transfer>;

/// Rounds in which every pair of `nodes` meets once: nodes - 1 if even, else nodes. `nodes` is at least 2 (asserted).
[[nodiscard]] int circle_rounds(int nodes);
/// Round `round` of the circle method: disjoint pairs. With an odd number of nodes one of them rests.
[[nodiscard]] Round circle(int nodes, int round);
/// The rings in which every node sends to the one that is `distance` further on in `nodes`: as many as the greatest
/// common divisor of both numbers. `distance` is 1 to one less than there are nodes (asserted).
[[nodiscard]] std::vector<std::vector<int>> shift_rings(const std::vector<int>& nodes, int distance);
/// `rounds` numbers of rounds, spread evenly over the circle and rising; all of them if there are no more.
[[nodiscard]] std::vector<int> sampled_rounds(int nodes, int rounds);
/// The same pairs in the other direction.
[[nodiscard]] Round reversed(Round round);

}  // namespace tutti::harness::accept
