// SPDX-License-Identifier: Apache-2.0
// The mix of a soak: the same for the same seed, wide, and on groups that overlap.
#include "harness/soak/mix.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness {
namespace {

TEST(Mix, IsTheSameForTheSameSeedAndAnotherForAnother) {
  EXPECT_EQ(Mix(7, 4, 1000).hash(), Mix(7, 4, 1000).hash());
  EXPECT_NE(Mix(7, 4, 1000).hash(), Mix(8, 4, 1000).hash());
  EXPECT_NE(Mix(7, 4, 1000).hash(), Mix(7, 5, 1000).hash());
  EXPECT_NE(Mix(7, 4, 1000).hash(), Mix(7, 4, 1001).hash());
}

TEST(Mix, HasEveryCollectiveOnEveryCommunicatorAndEveryDtypeOpPlacementAndBufferKind) {
  const Mix mix(1, 4, 10000);
  std::set<std::pair<Collective, int>> collectives;
  std::set<Dtype> dtypes;
  std::set<Op> ops;
  std::set<std::pair<bool, Buffers>> forms;
  std::set<int> exchanges, roots;
  bool has_zero = false;
  for (std::int64_t index = 0; index < mix.operations(); ++index) {
    const SoakOperation one = mix.at(index, 4);
    if (one.is_exchange) {
      exchanges.insert(one.shift);
      continue;
    }
    collectives.insert({one.what.problem.collective, one.communicator});
    dtypes.insert(one.what.dtype);
    ops.insert(one.what.op);
    forms.insert({one.is_in_place, one.buffers});
    roots.insert(one.what.problem.root);
    has_zero |= one.what.count == 0;
  }
  EXPECT_EQ(collectives.size(), all_collectives().size() * kSoakCommunicators);
  EXPECT_EQ(dtypes.size(), all_dtypes().size());
  EXPECT_EQ(ops.size(), all_ops().size() + 1) << "and none";
  EXPECT_EQ(forms.size(), 4U);
  EXPECT_EQ(exchanges.size(), 4U) << "to itself too";
  EXPECT_EQ(roots.size(), 4U);
  EXPECT_TRUE(has_zero);
}

TEST(Mix, EpochsCoverAllOperations) {
  const Mix mix(1, 3, 10);
  std::int64_t next = 0;
  for (int epoch = 0; epoch < kSoakEpochs; ++epoch) {
    EXPECT_EQ(mix.epoch(epoch).first, next);
    next = mix.epoch(epoch).second;
  }
  EXPECT_EQ(next, 10);
}

TEST(Mix, GroupsHoldRanksOfTheWorldOnceAndOverlap) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    const Mix mix(3, ranks, 100);
    for (int epoch = 0; epoch < kSoakEpochs; ++epoch) {
      for (int group = 0; group < kSoakCommunicators; ++group) {
        std::vector<int> members = mix.members(epoch, group, ranks - 1);
        std::ranges::sort(members);
        ASSERT_FALSE(members.empty());
        EXPECT_TRUE(std::ranges::adjacent_find(members) == members.end());
        EXPECT_GE(members.front(), 0);
        EXPECT_LT(members.back(), ranks);
      }
      EXPECT_EQ(mix.members(epoch, 0, 0).size(), static_cast<std::size_t>(ranks));
      EXPECT_THAT(mix.members(epoch, 1, ranks - 1), testing::Contains(ranks - 1));
      EXPECT_EQ(mix.members(epoch, 2, 0).size(), static_cast<std::size_t>(std::max(1, ranks - 1)));
    }
  }
}

TEST(Mix, BothEndsOfAnExchangeKnowTheCount) {
  SoakOperation operation;
  operation.what.count = 10;
  std::set<Count> counts;
  for (operation.what.salt = 0; operation.what.salt < 3; ++operation.what.salt) {
    for (int from = 0; from < 3; ++from) {
      for (int to = 0; to < 3; ++to) counts.insert(exchanged(operation, from, to));
    }
  }
  EXPECT_THAT(counts, testing::ElementsAre(0, 10, 20));
}

}  // namespace
}  // namespace tutti::harness
