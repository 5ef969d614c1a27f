// SPDX-License-Identifier: Apache-2.0
// Tables of blocks: where they come to lie, and what is refused, naming the block. (What the calls say of it is shown
// by suites/conformance/v_forms_test.cc.)
#include "impl/collective/blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Numbers = std::vector<Count>;

std::string text_of(const std::vector<Block>& blocks) {
  std::string text;
  for (const Block& block : blocks) text += fmt::format("{}+{} ", block.offset, block.bytes);
  return text;
}

const Numbers kCounts{2, 0, 3};

TEST(Blocks, FollowOneAnotherWithoutDisplacements) {
  const Problem problem{.collective = Collective::all_gather_v, .ranks = 3};
  const BlockTable table = blocks_of(problem, 2, {.counts = kCounts}, 4).value();
  EXPECT_EQ(text_of(table.output), "0+8 8+0 8+12 ");
  EXPECT_EQ(text_of(table.input), "0+12 ");
  EXPECT_THAT(table.shared, ElementsAre(8, 0, 12));
  EXPECT_EQ(extent_of(table.output), 20);
  EXPECT_EQ(total_of(table.output), 20);
}

TEST(Blocks, LieAtTheirDisplacements) {
  const Numbers displacements{4, 0, 1};
  const Problem problem{.collective = Collective::reduce_scatter_v, .ranks = 3};
  const BlockTable table = blocks_of(problem, 1, {.counts = kCounts, .displacements = displacements}, 8).value();
  EXPECT_EQ(text_of(table.input), "32+16 0+0 8+24 ");
  EXPECT_EQ(text_of(table.output), "0+0 ");
  EXPECT_EQ(extent_of(table.input), 48);
  EXPECT_EQ(
      in_place_shift(problem, 0, blocks_of(problem, 0, {.counts = kCounts, .displacements = displacements}, 8).value()),
      -32);
}

// Elsewhere displacements are not looked at, whatever they are.
TEST(Blocks, AreTheRootsWhereItHasTheDividedBuffer) {
  const Problem problem{.collective = Collective::gather_v, .ranks = 3, .root = 1};
  const Numbers nonsense{-1};
  const BlockTable other = blocks_of(problem, 0, {.counts = kCounts, .displacements = nonsense}, 4).value();
  EXPECT_THAT(other.output, IsEmpty());
  EXPECT_EQ(text_of(other.input), "0+8 ");
  EXPECT_THAT(blocks_of(problem, 1, {.counts = kCounts, .displacements = nonsense}, 4).status().message(),
              HasSubstr("1 displacements of the output on 3 ranks"));
}

TEST(Blocks, OfAllToAllAreBothWaysARanksOwn) {
  const Problem problem{.collective = Collective::all_to_all_v, .ranks = 2};
  const Numbers send{1, 2}, receive{3, 0}, displacements{1, 0};
  const BlockTable table =
      blocks_of(problem, {.counts = send}, {.counts = receive, .displacements = displacements}, 2).value();
  EXPECT_EQ(text_of(table.input), "0+2 2+4 ");
  EXPECT_EQ(text_of(table.output), "2+6 0+0 ");
  EXPECT_THAT(table.shared, IsEmpty());
}

TEST(Blocks, MayBeAsLongAs63BitsAndNoLonger) {
  const Problem problem{.collective = Collective::scatter_v, .ranks = 1};
  const Count most = (Count{1} << 61) - 1;
  EXPECT_EQ(blocks_of(problem, 0, {.counts = Numbers{most}}, 4).value().shared[0], 4 * most);
  EXPECT_THAT(blocks_of(problem, 0, {.counts = Numbers{most + 1}}, 4).status().message(),
              HasSubstr("count 2305843009213693952 of block 0 of the input: with it the blocks have more than "
                        "9223372036854775807 bytes"));
  EXPECT_THAT(
      blocks_of(problem, 0, {.counts = Numbers{most}, .displacements = Numbers{1}}, 4).status().message(),
      HasSubstr(
          "displacement 1 of block 0 of the input, which has 9223372036854775804 bytes, is out of range: 0 to 0"));
}

class CheckBlocks : public testing::Test {
 protected:
  std::string refusal(bool is_in_place = false) const {
    return std::string(check_blocks(problem_, 0, table_, is_in_place).message());
  }
  Problem problem_{.collective = Collective::all_gather_v, .ranks = 3};
  BlockTable table_ = blocks_of(problem_, 0, {.counts = kCounts}, 4).value();
};

TEST_F(CheckBlocks, NamesTwoThatOverlap) {
  EXPECT_EQ(refusal(), "");
  table_.output[2].offset = 7;
  EXPECT_EQ(refusal(), "blocks 0 and 2 of the output overlap: bytes [0, 8) and [7, 19)");
}

// Reading the same bytes twice is no conflict, unless the result is put there.
TEST_F(CheckBlocks, LetsThoseOfAnInputOverlapOutOfPlace) {
  problem_.collective = Collective::reduce_scatter_v;
  table_ = blocks_of(problem_, 0, {.counts = kCounts}, 4).value();
  table_.input[2].offset = 0;
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(refusal(true), "blocks 0 and 2 of the input overlap: bytes [0, 8) and [0, 12)");
}

TEST_F(CheckBlocks, NamesOneOfAnotherLengthThanAllRanksKnow) {
  table_.output[1].bytes = 4;
  EXPECT_EQ(refusal(), "block 1 of the output has 4 bytes, but block 1 of the call has 0");
  table_.output[1].bytes = 0;
  table_.input[0].bytes = 4;
  EXPECT_EQ(refusal(), "block 0 of the input has 4 bytes, but block 0 of the call has 8");
}

TEST_F(CheckBlocks, NamesWhatIsNotThere) {
  table_.output.pop_back();
  EXPECT_EQ(refusal(), "2 blocks of the output of rank 0: it has 3");
  table_.shared.pop_back();
  EXPECT_EQ(refusal(), "2 lengths that all ranks know, on 3 ranks: one for each block");
}

TEST_F(CheckBlocks, OfAllToAllInPlaceAreTheSameBothWaysButForEmptyOnes) {
  problem_.collective = Collective::all_to_all_v;
  const Division division{.counts = kCounts};
  table_ = blocks_of(problem_, division, division, 4).value();
  table_.output[1].offset = 0;
  EXPECT_EQ(refusal(true), "");
  table_.output[2].offset = 12;
  EXPECT_EQ(refusal(), "");
  EXPECT_THAT(refusal(true), HasSubstr("sends 12 bytes from 8 on to rank 2 and receives 12 bytes to 12"));
}

}  // namespace
}  // namespace tutti
