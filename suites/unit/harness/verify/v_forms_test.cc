// SPDX-License-Identifier: Apache-2.0
// Verification of v forms: each block is compared where it lies, what is between blocks must be as it was, and what is
// wrong is told with its cause.
#include <algorithm>
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/verify/buffers.h"
#include "harness/verify/check.h"

namespace tutti::harness::verify {
namespace {

using testing::HasSubstr;

constexpr int kRanks = 4;

Operation operation_of(Collective collective, std::string_view counts, Count elements, Op op = Op::none) {
  const Problem problem{.collective = collective, .ranks = kRanks, .root = 1};
  return {.problem = problem,
          .dtype = Dtype::f32,
          .op = op,
          .salt = 8,
          .blocks = std::make_shared<const CellBlocks>(problem, counts_of_name(counts).value(), elements)};
}

std::size_t bytes_of(Count elements) { return static_cast<std::size_t>(elements) * sizeof(float); }

/// Poison, and in it every block as it should be.
std::vector<std::byte> right_blocks(const Operation& operation, int rank) {
  std::vector<std::byte> bytes(bytes_of(operation.output_elements(rank)));
  fill_poison(bytes, operation.salt);
  for (int block = 0; block < output_blocks(operation.problem, rank); ++block) {
    const Place place = operation.output_place(rank, block);
    fill_expected(std::span(bytes).subspan(bytes_of(place.first), bytes_of(place.count)), operation,
                  {.rank = rank, .block = block});
  }
  return bytes;
}

CheckResult verify_blocks(const Operation& operation, int rank, const std::vector<std::byte>& bytes) {
  Oracle oracle(operation);
  return verify_output(oracle, {.rank = rank, .bytes = bytes});
}

TEST(VerifyV, TheOracleTakesABlockFromWhereItLies) {
  const Operation operation = operation_of(Collective::all_to_all_v, "random", 3000);
  for (int block = 0; block < kRanks; ++block) {
    const Place from = operation.input_place(block, 2), to = operation.output_place(2, block);
    ASSERT_EQ(from.count, to.count);
    std::vector<std::byte> expected(bytes_of(to.count)), input(expected.size());
    fill_expected(expected, operation, {.rank = 2, .block = block});
    fill_input(input, input_of(operation, block), from.first);
    EXPECT_EQ(expected, input) << "block " << block;
  }
}

TEST(VerifyV, RightOutputsAreRightOfEveryFormAndPattern) {
  for (const Collective form : {Collective::gather_v, Collective::all_gather_v, Collective::scatter_v,
                                Collective::reduce_scatter_v, Collective::all_to_all_v}) {
    for (const char* counts : {"ramp", "zeros", "random"}) {
      for (const Count elements : {0, 5, 20000}) {
        const Operation operation = operation_of(form, counts, elements, is_reducing(form) ? Op::sum : Op::none);
        for (int rank = 0; rank < kRanks; ++rank) {
          const std::vector<std::byte> output = right_blocks(operation, rank);
          const CheckResult result = verify_blocks(operation, rank, output);
          Count moved = 0;
          for (int i = 0; i < output_blocks(operation.problem, rank); ++i)
            moved += operation.output_place(rank, i).count;
          EXPECT_TRUE(result.is_ok()) << result.text();
          EXPECT_EQ(result.checked, moved);
          const CheckResult gaps = verify_gaps(operation, {.rank = rank, .bytes = output}, false);
          EXPECT_TRUE(gaps.is_ok()) << gaps.text();
          EXPECT_EQ(gaps.checked, operation.output_elements(rank) - moved);
        }
      }
    }
  }
}

TEST(VerifyV, AByteBetweenBlocksIsNotToBeWritten) {
  const Operation operation = operation_of(Collective::all_gather_v, "random", 100);
  std::vector<std::byte> output = right_blocks(operation, 0);
  std::vector<bool> is_block(static_cast<std::size_t>(operation.output_elements(0)));
  for (int block = 0; block < kRanks; ++block) {
    const Place place = operation.output_place(0, block);
    for (Count i = 0; i < place.count; ++i) is_block[static_cast<std::size_t>(place.first + i)] = true;
  }
  const auto gap = std::find(is_block.begin(), is_block.end(), false) - is_block.begin();
  ASSERT_LT(gap, static_cast<std::ptrdiff_t>(is_block.size()));
  output[bytes_of(gap) + 1] ^= std::byte{1};
  EXPECT_TRUE(verify_blocks(operation, 0, output).is_ok());
  const CheckResult gaps = verify_gaps(operation, {.rank = 0, .bytes = output}, false);
  EXPECT_EQ(gaps.wrong, 1);
  EXPECT_EQ(gaps.first_bad, gap);
  EXPECT_EQ(gaps.diagnosis, "the gaps between blocks are not to be written");
}

// In place what lies between the blocks of all_to_all_v is the input's.
TEST(VerifyV, GapsInPlaceHoldTheInput) {
  const Operation operation = operation_of(Collective::all_to_all_v, "random", 100);
  std::vector<std::byte> buffer(bytes_of(operation.input_elements(3)));
  fill_input(buffer, input_of(operation, 3));
  EXPECT_TRUE(verify_gaps(operation, {.rank = 3, .bytes = buffer}, true).is_ok());
  EXPECT_FALSE(verify_gaps(operation, {.rank = 3, .bytes = buffer}, false).is_ok());
}

TEST(VerifyV, TellsWhichBlockIsWrongAndWhatItHolds) {
  const Operation operation = operation_of(Collective::all_gather_v, "ramp", 100);  // 10 20 30 40
  std::vector<std::byte> output = right_blocks(operation, 0);
  fill_input(std::span(output).subspan(bytes_of(30), bytes_of(30)), input_of(operation, 3));
  const CheckResult result = verify_blocks(operation, 0, output);
  EXPECT_EQ(result.wrong, 30);
  EXPECT_EQ(result.first_bad, 30);
  EXPECT_EQ(result.diagnosis, "block 2 holds block 3");
}

TEST(VerifyV, TellsAMissingContributionOfABlockOfItsOwnLength) {
  const Operation operation = operation_of(Collective::reduce_scatter_v, "ramp", 100, Op::sum);
  std::vector<std::byte> output = right_blocks(operation, 3);
  const Place block = operation.input_place(0, 3);
  std::vector<float> total(40), input(40);
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank == 2) continue;
    fill_input(std::as_writable_bytes(std::span(input)), input_of(operation, rank), block.first);
    for (std::size_t i = 0; i < 40; ++i) total[i] += input[i];
  }
  std::copy_n(std::as_bytes(std::span(total)).begin(), output.size(), output.begin());
  EXPECT_EQ(verify_blocks(operation, 3, output).diagnosis, "rank 2's contribution is missing");
}

}  // namespace
}  // namespace tutti::harness::verify
