// SPDX-License-Identifier: Apache-2.0
#include "harness/simulate/model.h"

#include <gtest/gtest.h>

namespace tutti::harness::simulate {
namespace {

TEST(SizeTable, IsStraightBetweenPointsAndGoesOnWithTheLastSlope) {
  const SizeTable table{{1, 0}, {101, 1000}, {201, 3000}};
  EXPECT_EQ(table.at(0), 0);
  EXPECT_EQ(table.at(1), 0);
  EXPECT_EQ(table.at(51), 500);
  EXPECT_EQ(table.at(101), 1000);
  EXPECT_EQ(table.at(151), 2000);
  EXPECT_EQ(table.at(301), 5000);
}

TEST(SizeTable, OfOnePointIsConstantAndOfNoneZero) {
  EXPECT_EQ((SizeTable{{64, 7}}.at(0)), 7);
  EXPECT_EQ((SizeTable{{64, 7}}.at(1e9)), 7);
  EXPECT_EQ(SizeTable().at(8), 0);
}

TEST(SizeTable, OfALineHasAnOffsetAndASlope) {
  const SizeTable table = SizeTable::line(100, 0.5);
  EXPECT_DOUBLE_EQ(table.at(0), 100);
  EXPECT_DOUBLE_EQ(table.at(1000), 600);
}

TEST(ExampleMachine, HasNodesOfEightRanks) {
  const Machine machine = example_machine();
  EXPECT_TRUE(machine.is_near(0, 7));
  EXPECT_FALSE(machine.is_near(7, 8));
  EXPECT_LT(machine.model.near.latency, machine.model.far.latency);
}

}  // namespace
}  // namespace tutti::harness::simulate
