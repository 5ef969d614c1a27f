// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/schedule.h"

#include <cstdint>
#include <numeric>
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

std::vector<std::vector<int>> shift_rings(const std::vector<int>& nodes, int distance) {
  const auto count = static_cast<int>(nodes.size());
  TUTTI_ASSERT(distance >= 1 && distance < count, "distance {} of {} nodes", distance, count);
  std::vector<std::vector<int>> rings(at(std::gcd(count, distance)));
  for (std::size_t first = 0; first < rings.size(); ++first) {
    std::size_t next = first;
    do {
      rings[first].push_back(nodes[next]);
      next = (next + at(distance)) % nodes.size();
    } while (next != first);
  }
  return rings;
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
