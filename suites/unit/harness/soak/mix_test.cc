// SPDX-License-Identifier: Apache-2.0
// The mix of a soak: the same for the same seed, wide, and on groups that overlap.
#include "harness/soak/mix.h"

#include <algorithm>
#include <functional>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::soak {
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
  EXPECT_EQ(collectives.size(), every_collective().size() * kSoakCommunicators);
  EXPECT_EQ(dtypes.size(), all_dtypes().size());
  EXPECT_EQ(ops.size(), all_ops().size() + 1) << "and none";
  EXPECT_EQ(forms.size(), 4U);
  EXPECT_EQ(exchanges.size(), 4U) << "to itself too";
  EXPECT_EQ(roots.size(), 4U);
  EXPECT_TRUE(has_zero);
}

/// What the blocks of a divided buffer are like.
struct Likeness {
  bool has_empty, has_gap, is_out_of_order;
};
Likeness likeness_of(const std::vector<Block>& blocks) {
  Likeness found{};
  std::int64_t end = 0, bytes = 0;
  for (const Block& block : blocks) {
    found.has_empty |= block.bytes == 0;
    found.is_out_of_order |= block.bytes > 0 && block.offset < end;
    if (block.bytes > 0) end = block.offset + block.bytes;
    bytes += block.bytes;
  }
  found.has_gap = bytes > 0 && extent_of(blocks) > bytes;
  return found;
}

TEST(Mix, BlocksOfVFormsAreEmptyOrApartOrOutOfOrderOrElsewhereOnEachRank) {
  constexpr int kRanks = 4;
  const Mix mix(2, kRanks, 5000);
  for (const Collective collective : every_collective()) {
    if (!has_counts(collective)) continue;
    SCOPED_TRACE(to_string(collective));
    Likeness found{};
    bool differs_by_rank = false, is_uneven = false;
    for (std::int64_t index = 0; index < mix.operations(); ++index) {
      const SoakOperation one = mix.at(index, kRanks);
      if (one.is_exchange || one.what.problem.collective != collective) continue;
      ASSERT_NE(one.what.blocks, nullptr);
      std::vector<BlockTable> tables;
      for (int rank = 0; rank < kRanks; ++rank) tables.push_back(one.what.blocks->table(rank, 1));
      for (int rank = 0; rank < kRanks; ++rank) {
        const BlockTable& table = tables[static_cast<std::size_t>(rank)];
        const Status allowed = check_blocks(one.what.problem, rank, table, one.is_in_place);
        ASSERT_TRUE(allowed.is_ok()) << "operation " << index << ", rank " << rank << ": " << allowed.message();
        const auto& divided = divides_input(collective) ? table.input : table.output;
        const auto& of_first = divides_input(collective) ? tables[0].input : tables[0].output;
        const Likeness here = likeness_of(divided);
        found.has_empty |= here.has_empty;
        found.has_gap |= here.has_gap;
        found.is_out_of_order |= here.is_out_of_order;
        differs_by_rank |= divided.size() == of_first.size() && divided != of_first;
        is_uneven |= std::ranges::adjacent_find(divided, std::not_equal_to(), &Block::bytes) != divided.end();
        EXPECT_LE(total_of(divided) * static_cast<std::int64_t>(size_of(one.what.dtype)), kMostSoakBytes);
      }
    }
    EXPECT_TRUE(found.has_empty);
    EXPECT_TRUE(found.has_gap);
    EXPECT_TRUE(found.is_out_of_order);
    EXPECT_TRUE(is_uneven);
    EXPECT_EQ(differs_by_rank, !is_rooted(collective)) << "of a rooted one, the root alone has the divided buffer";
  }
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
}  // namespace tutti::harness::soak
