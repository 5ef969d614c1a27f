// SPDX-License-Identifier: Apache-2.0
#include "impl/algorithms/knomial.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::knomial {
namespace {

using testing::ElementsAre;

std::vector<int> list_of(const Children& children) { return {children.begin(), children.end()}; }

TEST(Knomial, TheTreeOfTwentyTwo) {
  EXPECT_THAT(list_of(children_of(22, 0)), ElementsAre(1, 2, 3, 4, 8, 12, 16));
  EXPECT_THAT(list_of(children_of(22, 16)), ElementsAre(17, 18, 19, 20));
  EXPECT_THAT(list_of(children_of(22, 20)), ElementsAre(21));
  EXPECT_THAT(list_of(children_of(22, 12)), ElementsAre(13, 14, 15));
  EXPECT_THAT(list_of(children_of(22, 21)), ElementsAre());
  EXPECT_EQ(parent_of(22, 21), 20);
  EXPECT_EQ(parent_of(22, 20), 16);
  EXPECT_EQ(subtree_size(22, 16), 6);
  EXPECT_EQ(subtree_size(22, 4), 4);
  EXPECT_EQ(child_towards(0, 21), 16);
  EXPECT_EQ(child_towards(16, 21), 20);
}

TEST(Knomial, SubtreesOfTheChildrenFollowTheRankWithoutAGap) {
  for (int ranks = 1; ranks <= 300; ++ranks) {
    for (int v = 0; v < ranks; ++v) {
      int next = v + 1;
      for (const int child : children_of(ranks, v)) {
        EXPECT_EQ(child, next);
        EXPECT_EQ(parent_of(ranks, child), v);
        next += subtree_size(ranks, child);
        EXPECT_EQ(child_towards(v, next - 1), child);
      }
      EXPECT_EQ(next, v + subtree_size(ranks, v)) << v << " of " << ranks;
    }
    EXPECT_EQ(subtree_size(ranks, 0), ranks);
  }
}

// The largest rank that an int holds has more digits than the width may be multiplied.
TEST(Knomial, HoldsAtTheLargestNumberOfRanks) {
  constexpr int kMostRanks = 2'147'483'647;
  EXPECT_EQ(children_of(kMostRanks, 0).size, 46);
  EXPECT_EQ(parent_of(kMostRanks, 1 << 30), 0);
  EXPECT_EQ(subtree_size(kMostRanks, 1 << 30), (1 << 30) - 1);
  EXPECT_EQ(child_towards(0, kMostRanks - 1), 1 << 30);
}

TEST(Knomial, RelativeRanksBeginAtTheRoot) {
  const Problem problem{.collective = Collective::broadcast, .ranks = 5, .root = 3};
  EXPECT_EQ(relative_rank(problem, 3), 0);
  EXPECT_EQ(relative_rank(problem, 2), 4);
  for (int rank = 0; rank < 5; ++rank) EXPECT_EQ(absolute_rank(problem, relative_rank(problem, rank)), rank);
}

}  // namespace
}  // namespace tutti::knomial
