// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/schedule.h"

#include <algorithm>
#include <set>
#include <utility>

#include <gtest/gtest.h>

namespace tutti::harness::accept {
namespace {

TEST(AcceptSchedule, InTheCircleEveryPairMeetsOnceAndRoundsAreDisjoint) {
  for (int nodes = 2; nodes <= 65; ++nodes) {
    std::set<std::pair<int, int>> met;
    for (int number = 0; number < circle_rounds(nodes); ++number) {
      std::set<int> busy;
      for (const auto& [one, other] : circle(nodes, number)) {
        ASSERT_TRUE(one >= 0 && one < nodes && other >= 0 && other < nodes) << nodes << ": " << one << ", " << other;
        EXPECT_TRUE(busy.insert(one).second && busy.insert(other).second) << nodes << " nodes, round " << number;
        EXPECT_TRUE(met.insert(std::minmax({one, other})).second) << nodes << ": " << one << ", " << other;
      }
    }
    EXPECT_EQ(std::ssize(met), nodes * (nodes - 1) / 2) << nodes;
  }
}

TEST(AcceptSchedule, CircleOfFour) {
  EXPECT_EQ(circle(4, 0), (Round{{3, 0}, {1, 2}}));
  EXPECT_EQ(circle(4, 1), (Round{{3, 1}, {2, 0}}));
  EXPECT_EQ(circle(4, 2), (Round{{3, 2}, {0, 1}}));
  EXPECT_EQ(circle(3, 0), (Round{{1, 2}})) << "node 0 rests";
}

TEST(AcceptSchedule, AShiftSendsFromEachNodeAndToEachNode) {
  using Rings = std::vector<std::vector<int>>;
  EXPECT_EQ(shift_rings({7, 8, 9}, 1), (Rings{{7, 8, 9}}));
  EXPECT_EQ(shift_rings({7, 8, 9}, 2), (Rings{{7, 9, 8}}));
  EXPECT_EQ(shift_rings({0, 1, 2, 3, 4, 5}, 4), (Rings{{0, 4, 2}, {1, 5, 3}}));
  EXPECT_EQ(shift_rings({0, 1, 2, 3}, 2), (Rings{{0, 2}, {1, 3}}));
}

TEST(AcceptSchedule, SampledRoundsAreSpreadOverTheCircle) {
  EXPECT_EQ(sampled_rounds(9, 3), (std::vector<int>{0, 3, 6}));
  EXPECT_EQ(sampled_rounds(4, 64), (std::vector<int>{0, 1, 2}));
  const std::vector<int> many = sampled_rounds(1024, 64);
  EXPECT_EQ(many.size(), 64U);
  EXPECT_TRUE(std::ranges::adjacent_find(many, std::greater_equal<>()) == many.end()) << "rising";
  EXPECT_GT(many.back(), 1000);
}

}  // namespace
}  // namespace tutti::harness::accept
