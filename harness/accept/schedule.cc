// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/schedule.h"

#include <cstdint>
#include <utility>

#include "impl/types/status.h"

namespace tutti::harness::accept {

int circle_rounds(int nodes) {
  TUTTI_ASSERT(nodes >= 2, "{} nodes have no pair", nodes);
  return nodes % 2 == 0 ? nodes - 1 : nodes;
}

Round circle(int nodes, int round) {
  const int on_circle = circle_rounds(nodes);
  TUTTI_ASSERT(round >= 0 && round < on_circle, "round {} of {}", round, on_circle);
  Round pairs;
  // The last node of an even number sits in the middle. Of an odd number, the node opposite to the empty seat rests.
  if (nodes % 2 == 0) pairs.push_back({.sender = nodes - 1, .receiver = round});
  for (int step = 1; step <= (on_circle - 1) / 2; ++step) {
    pairs.push_back({.sender = (round + step) % on_circle, .receiver = (round - step + on_circle) % on_circle});
  }
  return pairs;
}

Round shift(int nodes, int distance) {
  TUTTI_ASSERT(distance >= 1 && distance < nodes, "distance {} of {} nodes", distance, nodes);
  Round round;
  for (int node = 0; node < nodes; ++node) round.push_back({.sender = node, .receiver = (node + distance) % nodes});
  return round;
}

std::vector<int> sampled_rounds(int nodes, int rounds) {
  const int all = circle_rounds(nodes);
  TUTTI_ASSERT(rounds >= 1, "{} rounds", rounds);
  const int taken = rounds < all ? rounds : all;
  std::vector<int> numbers;
  for (int i = 0; i < taken; ++i) numbers.push_back(static_cast<int>(std::int64_t{i} * all / taken));
  return numbers;
}

Round reversed(Round round) {
  for (Transfer& transfer : round) std::swap(transfer.sender, transfer.receiver);
  return round;
}

}  // namespace tutti::harness::accept
