// SPDX-License-Identifier: Apache-2.0
#include "impl/schedule/unit_table.h"

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

UnitTable table_of(int units, Count count, std::int64_t element_bytes = 4) {
  return UnitTable({.units_per_block = units, .segment = count, .block = count, .element_bytes = element_bytes});
}

std::vector<std::pair<std::int64_t, std::int64_t>> pairs(const Pieces& pieces) {
  std::vector<std::pair<std::int64_t, std::int64_t>> list;
  for (const Piece& piece : pieces) list.emplace_back(piece.offset, piece.bytes);
  return list;
}

TEST(UnitTable, UnitsAreWholeLinesAndTheLastTakesWhatIsLeft) {
  const UnitTable table = table_of(3, 40);  // 160 bytes: 14 elements each would be 56 bytes
  EXPECT_EQ(table.part_offset(0), 0);
  EXPECT_EQ(table.part_offset(1), 64);
  EXPECT_EQ(table.part_offset(2), 128);
  EXPECT_EQ(table.part_offset(3), 160);
  EXPECT_EQ(table.largest_unit_bytes(), 64);
}

TEST(UnitTable, TheBytesOfASetAreThoseOfItsPieces) {
  const UnitTable table = table_of(3, 40);
  for (const UnitSet& set : {units(0, 1), units(2, 1), units(4, 3), units(5, 4), UnitSet{1, 2, 3, 2}, units(0, 0)}) {
    std::int64_t sum = 0;
    for (const Piece& piece : table.pieces(set, 2, 1000)) sum += piece.bytes;
    EXPECT_EQ(table.bytes(set, 2), sum) << set.start << " " << set.length;
  }
  EXPECT_EQ(table.bytes(units(5, 4), 2), 32 + 64 + 64 + 32) << "around the end of two blocks";
  EXPECT_EQ(table.bytes(units(0, 1), 0), 0);
}

TEST(UnitTable, CountsBelowTheUnitsLeaveTheLastOnesEmpty) {
  const UnitTable table = table_of(4, 3);
  EXPECT_THAT(pairs(table.pieces(unit(0), 1, table.user_stride())), ElementsAre(Pair(0, 12)));
  EXPECT_THAT(pairs(table.pieces(units(1, 3), 1, table.user_stride())), IsEmpty());
}

TEST(UnitTable, ElementsAreNeverCut) {
  const UnitTable table = table_of(2, 100, 2);  // 50 of 2 bytes each, rounded up to 64 of them
  EXPECT_EQ(table.part_offset(1), 128);
  EXPECT_EQ(table.part_offset(2), 200);
}

TEST(UnitTable, NeighboursAreMergedAndWrappingStartsAnew) {
  const UnitTable table = table_of(4, 64);
  EXPECT_THAT(pairs(table.pieces(units(1, 2), 1, 256)), ElementsAre(Pair(64, 128)));
  EXPECT_THAT(pairs(table.pieces(units(3, 2), 1, 256)), ElementsAre(Pair(192, 64), Pair(0, 64)));
}

TEST(UnitTable, StridedSetsKeepTheirOrder) {
  const UnitTable table = table_of(8, 128);
  EXPECT_THAT(pairs(table.pieces({.start = 6, .length = 1, .stride = 4, .repeat = 2}, 1, 512)),
              ElementsAre(Pair(384, 64), Pair(128, 64)));
}

TEST(UnitTable, BlocksLieAStrideApart) {
  const UnitTable segment({.units_per_block = 1, .segment = 16, .block = 40, .element_bytes = 4});
  EXPECT_EQ(segment.user_stride(), 160);
  EXPECT_EQ(segment.mirror_stride(), 64);
  EXPECT_THAT(pairs(segment.pieces(units(1, 2), 3, segment.user_stride())), ElementsAre(Pair(160, 64), Pair(320, 64)));
  EXPECT_THAT(pairs(segment.pieces(units(1, 2), 3, segment.mirror_stride())), ElementsAre(Pair(64, 128)));
}

// Block 0 has 40 elements, block 1 none and block 2 is the first in memory.
TEST(UnitTable, BlocksOfTheirOwnAreCutEachByItself) {
  const std::vector<Block> blocks{
      {.offset = 600, .bytes = 160}, {.offset = 0, .bytes = 0}, {.offset = 8, .bytes = 100}};
  const UnitTable whole = table_of(1, 0);
  EXPECT_THAT(pairs(whole.pieces(units(0, 3), blocks)), ElementsAre(Pair(600, 160), Pair(8, 100)));
  EXPECT_THAT(pairs(whole.pieces(units(2, 2), blocks)), ElementsAre(Pair(8, 100), Pair(600, 160)));
  const UnitTable cut = table_of(3, 0);
  EXPECT_THAT(pairs(cut.pieces(units(1, 2), blocks)), ElementsAre(Pair(664, 96)));
  EXPECT_THAT(pairs(cut.pieces(units(6, 2), blocks)), ElementsAre(Pair(8, 100)));
  EXPECT_EQ(cut.bytes(units(1, 6), 3, [&](int block) { return blocks[static_cast<std::size_t>(block)].bytes; }),
            64 + 32 + 64);
}

TEST(UnitTable, ASpaceWithoutBlocksHasNoPieces) {
  EXPECT_THAT(pairs(table_of(1, 16).pieces(unit(0), 0, 64)), IsEmpty());
}

TEST(UnitTable, AShorterSegmentNeverHasALongerUnit) {
  for (const int parts : {1, 2, 3, 5, 7, 16}) {
    std::int64_t last = 0;
    for (Count count = 0; count < 700; ++count) {
      const std::int64_t unit_bytes = table_of(parts, count).largest_unit_bytes();
      ASSERT_GE(unit_bytes, last) << parts << " units, count " << count;
      last = unit_bytes;
    }
  }
}

}  // namespace
}  // namespace tutti
