// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/leaves_by_speed.h"

#include <functional>
#include <numeric>

#include <gmock/gmock.h>

namespace tutti::harness::accept {
namespace {

using testing::ElementsAre;

std::vector<int> nodes_to(int count) {
  std::vector<int> nodes(static_cast<std::size_t>(count));
  std::iota(nodes.begin(), nodes.end(), 0);
  return nodes;
}

/// Cells of nodes that all play.
std::optional<std::vector<int>> leaves_of(int nodes, const std::function<double(int, int)>& speed) {
  Matrix cells(nodes);
  for (int sender = 0; sender < nodes; ++sender) {
    for (int receiver = 0; receiver < nodes; ++receiver) {
      if (sender != receiver) cells(sender, receiver) = speed(sender, receiver);
    }
  }
  return leaves_by_speed(cells, nodes_to(nodes), {});
}

TEST(LeavesBySpeed, AreThoseWhosePairsAreFaster) {
  const auto far = [](int one, int other) { return one % 2 == other % 2 ? 0.0 : -0.1; };
  const auto leaves = leaves_of(6, far);
  ASSERT_TRUE(leaves);
  EXPECT_THAT(*leaves, ElementsAre(0, 1, 0, 1, 0, 1));
}

TEST(LeavesBySpeed, ASlowNodeHidesNone) {
  const auto leaves = leaves_of(8, [](int one, int other) {
    const double slow = one == 5 || other == 5 ? -0.4 : 0;
    return (one / 4 == other / 4 ? 0.0 : -0.1) + slow;
  });
  ASSERT_TRUE(leaves);
  EXPECT_THAT(*leaves, ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
}

TEST(LeavesBySpeed, TwoKindsOfNodesAreNoLeaves) {
  EXPECT_FALSE(leaves_of(8, [](int one, int other) { return one < 4 && other < 4 ? 0.0 : -0.2; })) << "by the slower";
  EXPECT_FALSE(leaves_of(8, [](int one, int other) { return -0.1 * ((one < 4) + (other < 4)); })) << "each loses";
}

TEST(LeavesBySpeed, NothingIsShownByOneLevelOrByASlowPart) {
  EXPECT_FALSE(leaves_of(8, [](int, int) { return 0.0; }));
  EXPECT_FALSE(leaves_of(8, [](int one, int other) { return one / 4 == other / 4 ? 0.0 : -0.02; }))
      << "within the margin";
  EXPECT_FALSE(leaves_of(8, [](int one, int other) { return one == 2 || other == 2 ? -0.3 : 0.0; })) << "a node";
  EXPECT_FALSE(leaves_of(8, [](int one, int other) { return one + other == 7 && one % 7 == 0 ? -0.3 : 0.0; }))
      << "a link";
  EXPECT_FALSE(leaves_of(3, [](int one, int other) { return one / 2 == other / 2 ? 0.0 : -0.1; })) << "three nodes";
}

}  // namespace
}  // namespace tutti::harness::accept
