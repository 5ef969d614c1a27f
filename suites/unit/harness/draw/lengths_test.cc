// SPDX-License-Identifier: Apache-2.0
#include "harness/draw/lengths.h"

#include <gtest/gtest.h>

namespace tutti::harness::draw {
namespace {

Lengths lengths_of(Collective collective, int ranks, Pattern pattern, Count elements, int units) {
  const Problem problem{.collective = collective, .ranks = ranks};
  return {problem, CellBlocks(problem, {.pattern = pattern}, elements), units};
}

using List = std::vector<Count>;

TEST(Lengths, AreThoseOfTheBlocksOfEachBuffer) {
  const Lengths gathered = lengths_of(Collective::all_gather_v, 3, Pattern::ramp, 12, 1);
  EXPECT_EQ(gathered.given(1), List({4}));
  EXPECT_EQ(gathered.held(1), List({2, 4, 6}));
  EXPECT_EQ(gathered.longest(), 12);
  EXPECT_FALSE(gathered.has_empty());
  const Lengths scattered = lengths_of(Collective::reduce_scatter_v, 4, Pattern::zeros, 12, 1);
  EXPECT_EQ(scattered.given(3), List({6, 0, 6, 0}));
  EXPECT_EQ(scattered.held(3), List({0}));
  EXPECT_TRUE(scattered.has_empty());
}

TEST(Lengths, OfUnitsAddUpToTheirBlock) {
  const Lengths lengths = lengths_of(Collective::all_gather_v, 3, Pattern::ramp, 12, 4);
  EXPECT_EQ(lengths.held(0), List({0, 1, 0, 1, 1, 1, 1, 1, 1, 2, 1, 2}));
  EXPECT_EQ(lengths.of({{.unit = 1, .ranks = bit_of(2)}, {}, {.unit = 3, .ranks = bit_of(0)}}), 3);
}

TEST(Lengths, OfASumAreThoseOfOneOfItsParts) {
  const Lengths lengths = lengths_of(Collective::reduce_scatter_v, 3, Pattern::ramp, 12, 1);
  EXPECT_EQ(lengths.of({{.unit = 2, .ranks = bit_of(0) | bit_of(2)}}), 6);
}

TEST(Lengths, WithoutBlocksAreEmpty) { EXPECT_TRUE(Lengths().is_empty()); }

}  // namespace
}  // namespace tutti::harness::draw
