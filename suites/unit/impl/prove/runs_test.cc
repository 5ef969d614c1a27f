// SPDX-License-Identifier: Apache-2.0
// Runs against a plain array, and the arithmetic of symbolic values.
#include "impl/prove/runs.h"

#include <random>

#include <gtest/gtest.h>

#include "impl/prove/values.h"

namespace tutti {
namespace {

TEST(Runs, HoldWhatAPlainArrayHolds) {
  constexpr int kBytes = 60;
  std::mt19937 random(1);
  for (int trial = 0; trial < 300; ++trial) {
    Runs<int> runs;
    std::vector<int> array(kBytes, -1);
    for (int i = 0; i < 40; ++i) {
      const int begin = static_cast<int>(random() % kBytes);
      const int end = begin + 1 + static_cast<int>(random() % static_cast<unsigned>(kBytes - begin));
      const int value = static_cast<int>(random() % 3);
      runs.write(begin, end, value);
      std::fill(array.begin() + begin, array.begin() + end, value);
    }
    for (int at = 0; at < kBytes; ++at) {
      const auto* const run = runs.find(at);
      ASSERT_EQ(run != nullptr ? run->value : -1, array[static_cast<std::size_t>(at)]);
    }
    for (std::size_t i = 1; i < runs.list().size(); ++i) {
      const auto &left = runs.list()[i - 1], &right = runs.list()[i];
      ASSERT_LE(left.end, right.begin);
      ASSERT_TRUE(left.end < right.begin || left.value != right.value) << "neighbours of equal value are one run";
    }
  }
}

TEST(Runs, KnowTheirGaps) {
  Runs<int> runs;
  runs.write(10, 20, 1);
  EXPECT_EQ(runs.gap_end(0, 64), 10);
  EXPECT_EQ(runs.gap_end(20, 64), 64);
  EXPECT_FALSE(runs.overlaps(0, 10));
  EXPECT_TRUE(runs.overlaps(19, 30));
  EXPECT_FALSE(runs.overlaps(20, 30));
}

TEST(Powers, AddTheirExponents) {
  const Powers powers;
  EXPECT_EQ(powers.of(0), 1U);
  const std::int64_t far = (std::int64_t{1} << 40) + 12345;
  EXPECT_EQ(multiply_mod(powers.of(far), powers.of(-far)), 1U);
  EXPECT_EQ(multiply_mod(powers.of(70000), powers.of(-69999)), powers.of(1));
  EXPECT_NE(powers.of(1), powers.of(2));
}

TEST(HashLane, TellsMultisetsOffsetsAndOrdersApart) {
  const HashLane lane;
  const auto reduced = [&lane](std::initializer_list<int> ranks) {
    auto value = lane.contribution(*ranks.begin());
    for (const int* rank = ranks.begin() + 1; rank != ranks.end(); ++rank)
      lane.combine(value, lane.contribution(*rank));
    return value;
  };
  EXPECT_EQ(reduced({0, 1, 2}).sum, reduced({2, 0, 1}).sum);
  EXPECT_NE(reduced({0, 1, 2}).sum, reduced({0, 1, 1}).sum);
  EXPECT_NE(reduced({0, 1, 2}).order, reduced({0, 2, 1}).order);
  EXPECT_EQ(reduced({0, 1}).tree, reduced({1, 0}).tree);
  EXPECT_NE(reduced({0, 1, 2}).tree, reduced({1, 2, 0}).tree);
  auto moved = lane.contribution(3);
  lane.shift(moved, 64);
  EXPECT_NE(moved.sum, lane.contribution(3).sum);
  lane.shift(moved, -64);
  EXPECT_EQ(moved.sum, lane.contribution(3).sum);
}

}  // namespace
}  // namespace tutti
