// SPDX-License-Identifier: Apache-2.0
// Likely causes of wrong outputs: every kind of corruption is put into a right output and must come out by its name.
#include "harness/verify/diagnose.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/verify/buffers.h"
#include "harness/verify/suspect.h"
#include "suites/unit/harness/verify/outputs.h"

namespace tutti::harness::verify {
namespace {

using testing::HasSubstr;

TEST(Cause, NamesTheRankWhoseContributionIsMissing) {
  for (const Operation& operation : every_all_reduce()) {
    const CheckResult result = verify(operation, 1, weighted(operation, {3}, 0));
    const bool is_added = combining(operation.op) == Op::sum || operation.op == Op::prod;
    const Count least = !is_added ? 1000 : is_coarse(operation) && operation.op == Op::avg ? 5000 : 9000;
    EXPECT_GT(result.wrong, least) << name_of(operation);
    EXPECT_EQ(result.diagnosis, "rank 3's contribution is missing") << name_of(operation);
  }
}

TEST(Cause, NamesTheRankThatIsCountedTwice) {
  for (const Operation& operation : every_all_reduce()) {
    if (operation.op != Op::sum && operation.op != Op::avg && operation.op != Op::prod) continue;
    EXPECT_EQ(verify(operation, 1, weighted(operation, {2}, 2)).diagnosis, "rank 2's contribution is counted twice")
        << name_of(operation);
  }
}

TEST(Cause, OfAScanIsLookedForAmongTheRanksThatContribute) {
  for (const Op op : {Op::sum, Op::prod, Op::premul_sum}) {
    const Operation operation = scan(Dtype::f32, op);
    // Of the last rank, to which all contribute, what is wrong with an all_reduce is wrong here.
    EXPECT_EQ(verify(operation, 4, weighted(operation, {3}, 0)).diagnosis, "rank 3's contribution is missing");
    EXPECT_EQ(verify(operation, 4, weighted(operation, {2}, 2)).diagnosis, "rank 2's contribution is counted twice");
    EXPECT_EQ(verify(operation, 3, right_output(operation, 2)).diagnosis, "rank 3's contribution is missing");
    EXPECT_EQ(verify(operation, 1, right_output(operation, 3)).diagnosis,
              "holds what ranks 0 to 3 come to, instead of ranks 0 to 1");
    EXPECT_EQ(verify(operation, 0, right_output(operation, 1)).diagnosis,
              "holds what ranks 0 to 1 come to, instead of ranks 0 to 0");
  }
}

TEST(Cause, NamesTheRankThatContributedStaleData) {
  const Operation operation = all_reduce(Dtype::f32, Op::sum);
  Operation previous = operation;
  --previous.salt;
  auto output = right_output(operation, 0);
  const auto fresh = input_bytes(operation, 4, output.size());
  const auto stale = input_bytes(previous, 4, output.size());
  for (std::size_t at = 0; at < output.size(); at += 4) {
    float values[3];
    std::memcpy(&values[0], &output[at], 4);
    std::memcpy(&values[1], &fresh[at], 4);
    std::memcpy(&values[2], &stale[at], 4);
    const float wrong = values[0] - values[1] + values[2];
    std::memcpy(&output[at], &wrong, 4);
  }
  EXPECT_EQ(verify(operation, 1, output).diagnosis, "rank 4 contributed its previous data, of salt 7");
}

TEST(Cause, SaysThatNothingWasWritten) {
  for (const Operation& operation : {all_reduce(Dtype::bf16, Op::sum), all_reduce(Dtype::f64, Op::sum),
                                     all_reduce(Dtype::f16, Op::sum), all_to_all(), broadcast()}) {
    auto output = right_output(operation, 1);
    fill_poison(output, operation.salt);
    const CheckResult result = verify(operation, 1, output);
    EXPECT_EQ(result.wrong, result.checked);
    EXPECT_EQ(result.diagnosis, "output still holds the poison: nothing was written");
  }
}

TEST(Cause, SaysThatTheMessagesOfAWindowAreTooShort) {
  const Operation operation{.problem = {.collective = Collective::bandwidth, .ranks = 2, .pairing = {.window = 3}},
                            .dtype = Dtype::f32,
                            .count = 100};
  auto output = right_output(operation, 1);
  fill_poison(std::span(output).last(12), operation.salt);
  EXPECT_EQ(verify(operation, 1, output).diagnosis,
            "the last 3 elements of the window, one for each message, were not written: the count is one too small");
  fill_poison(std::span(output).last(16), operation.salt);
  EXPECT_EQ(verify(operation, 1, output).diagnosis, "4 elements still hold the poison: they were not written");
}

TEST(Cause, SaysThatTheLastElementWasNotWritten) {
  const Operation operation = all_reduce(Dtype::f32, Op::sum);
  auto output = right_output(operation, 0);
  fill_poison(std::span(output).last(4), operation.salt);
  const CheckResult result = verify(operation, 0, output);
  EXPECT_EQ(result.wrong, 1);
  EXPECT_EQ(result.first_bad, 9999);
  EXPECT_EQ(result.diagnosis, "the last element of the block was not written: the count is one too small");
  fill_poison(std::span(output).last(8), operation.salt);
  EXPECT_EQ(verify(operation, 0, output).diagnosis, "2 elements still hold the poison: they were not written");
}

TEST(Cause, SaysThatElementsWereNotWrittenAlsoWhereOneWasInPart) {
  for (const Dtype dtype : {Dtype::f16, Dtype::i32, Dtype::f64}) {
    const Operation operation = all_reduce(dtype, Op::sum, 67);
    auto output = right_output(operation, 0);
    const std::size_t unwritten = 33 * size_of(dtype) + size_of(dtype) / 2;
    std::vector<std::byte> poison(output.size());
    fill_poison(poison, operation.salt);
    std::copy_n(poison.end() - static_cast<std::ptrdiff_t>(unwritten), unwritten,
                output.end() - static_cast<std::ptrdiff_t>(unwritten));
    const CheckResult result = verify(operation, 0, output);
    EXPECT_EQ(result.wrong, 34) << to_string(dtype);
    EXPECT_EQ(result.diagnosis, "34 elements still hold the poison: they were not written") << to_string(dtype);
    EXPECT_FALSE(result.tells_cause);
  }
}

TEST(Cause, RecognisesPreviousDataAndPreviousPoison) {
  for (const Operation& operation : {all_reduce(Dtype::i32, Op::max), all_to_all(), broadcast()}) {
    Operation previous = operation;
    --previous.salt;
    EXPECT_EQ(verify(operation, 1, right_output(previous, 1)).diagnosis,
              "holds previous data: the result of salt 7 instead of 8");
    auto output = right_output(operation, 1);
    fill_poison(output, previous.salt);
    EXPECT_THAT(verify(operation, 1, output).diagnosis, HasSubstr("holds previous poison, of salt 7"));
  }
}

TEST(Cause, RecognisesSwappedBlocks) {
  const Operation operation = all_to_all();
  auto output = right_output(operation, 3);
  std::swap_ranges(output.begin() + 20000, output.begin() + 40000, output.begin() + 40000);
  const CheckResult result = verify(operation, 3, output);
  EXPECT_EQ(result.wrong, 10000);
  EXPECT_EQ(result.first_bad, 5000);
  EXPECT_EQ(result.last_bad, 14999);
  EXPECT_EQ(result.diagnosis, "blocks 1 and 2 are swapped");
  std::copy_n(output.begin() + 20000, 20000, output.begin() + 40000);  // block 2, in both places
  EXPECT_EQ(verify(operation, 3, output).diagnosis, "block 1 holds block 2");
}

TEST(Cause, RecognisesSwappedPartsOfABlock) {
  for (const Operation& operation : {all_reduce(Dtype::f32, Op::sum), broadcast(10000)}) {
    auto output = right_output(operation, 3);
    std::swap_ranges(output.begin(), output.begin() + 20000, output.begin() + 20000);
    EXPECT_EQ(verify(operation, 3, output).diagnosis,
              "parts of block 0 are swapped: from element 0 on lies what belongs 5000 elements later");
  }
}

TEST(Cause, TellsSwappedPartsFromACountThatIsOneTooLarge) {
  Operation operation = all_reduce(Dtype::f32, Op::sum, 6);
  operation.problem = {.collective = Collective::reduce_scatter, .ranks = 4};
  auto output = right_output(operation, 3);
  std::swap_ranges(output.begin(), output.begin() + 12, output.begin() + 12);
  EXPECT_EQ(verify(operation, 3, output).diagnosis,
            "parts of block 0 are swapped: from element 0 on lies what belongs 3 elements later");
}

TEST(Cause, NamesTheRankWhoseBlockIsMissing) {
  const Operation operation = all_to_all();
  auto output = right_output(operation, 3);
  fill_poison(std::span(output).subspan(40000, 20000), operation.salt);
  EXPECT_EQ(verify(operation, 3, output).diagnosis, "block 2 was not written: rank 2's contribution is missing");
}

TEST(Cause, NamesSeveralRanksThatAreMissing) {
  const Operation operation = all_reduce(Dtype::i32, Op::sum);
  EXPECT_EQ(verify(operation, 0, weighted(operation, {1, 4}, 0)).diagnosis,
            "the contributions of ranks 1 and 4 are missing");
}

TEST(Cause, NamesSeveralRanksThatAreCountedTwice) {
  const Operation operation = all_reduce(Dtype::i32, Op::sum);
  EXPECT_EQ(verify(operation, 0, weighted(operation, {0, 1, 4}, 2)).diagnosis,
            "the contributions of ranks 0 and 1 and 4 are counted twice");
}

TEST(Cause, NamesTheRankThatContributedStaleDataWhereTheSumIsRoundedOnItsWay) {
  const Operation operation = all_reduce(Dtype::f8e5m2, Op::sum);
  Operation previous = operation;
  --previous.salt;
  auto output = right_output(operation, 0);
  const auto stale = input_bytes(previous, 4, output.size());
  for (std::size_t i = 0; i < output.size(); ++i) {
    const auto number = [](std::byte byte) { return value_of<Float8E5M2>(std::to_integer<unsigned>(byte)).to_float(); };
    float sum = number(stale[i]);
    for (int rank = 0; rank < 4; ++rank) {
      std::byte input{};
      fill_input(std::span(&input, 1), input_of(operation, rank), static_cast<Count>(i));
      sum = Float8E5M2::from_float(sum + number(input)).to_float();
    }
    output[i] = static_cast<std::byte>(bits_of(Float8E5M2::from_float(sum)));
  }
  EXPECT_EQ(verify(operation, 1, output).diagnosis,
            "rank 4 contributed its previous data, of salt 7, but for roundings");
}

TEST(Cause, NamesAnotherRoot) {
  const Operation operation = broadcast();
  EXPECT_EQ(verify(operation, 0, input_bytes(operation, 3, 20000)).diagnosis,
            "holds what it would if rank 3 were the root");
  Operation reduce = all_reduce(Dtype::f32, Op::sum, 300);
  reduce.problem = {.collective = Collective::reduce, .ranks = 4, .root = 2};
  Operation elsewhere = reduce;
  elsewhere.problem.root = 1;
  EXPECT_EQ(verify(reduce, 1, right_output(elsewhere, 1)).diagnosis,
            "this rank's output is not to be written: it holds the result, as if this rank were the root");
}

TEST(Cause, NamesACountThatIsOneTooSmallOrTooLarge) {
  Operation operation = all_to_all(300);
  operation.problem.collective = Collective::all_gather;
  Operation fewer = operation;
  fewer.count = 299;
  auto output = right_output(operation, 1);
  const auto shorter = right_output(fewer, 1);
  fill_poison(output, operation.salt);
  std::ranges::copy(shorter, output.begin());
  EXPECT_EQ(verify(operation, 1, output).diagnosis,
            "holds what it would if every block had one element less: the count is one too small");
}

TEST(Cause, NamesATypeThatIsTooNarrow) {
  const Operation operation = all_reduce(Dtype::f32, Op::sum);
  auto output = right_output(operation, 1);
  for (std::size_t at = 0; at < output.size(); at += 4) output[at] = output[at + 1] = std::byte{0};  // bfloat16
  EXPECT_EQ(verify(operation, 1, output).diagnosis,
            "no wrong result has more than 8 of float's 24 bits: reduced in too narrow a type");
}

TEST(Cause, NamesAMessageThatWasLost) {
  const Operation operation = broadcast();
  auto output = right_output(operation, 1);
  for (std::size_t at = 4096; at < 8192; at += 4) output[at] ^= static_cast<std::byte>(3U + at / 4 % 97);
  EXPECT_EQ(verify(operation, 1, output).diagnosis,
            "elements 1024 to 2047, 4096 bytes in a row, hold nothing of this operation: as if a message was lost");
}

class FlippedOnTheWay : public testing::TestWithParam<Count> {};

TEST_P(FlippedOnTheWay, IsNamedWithItsBitAndItsRank) {
  const Count count = GetParam();
  const Operation operation = all_reduce(Dtype::i32, Op::sum, count);
  const auto at = static_cast<std::size_t>(4 * (count - 1));
  auto output = right_output(operation, 0);
  std::array<std::byte, 4> bytes;
  fill_input(bytes, input_of(operation, 2), count - 1);
  std::uint32_t value = 0, result = 0;
  std::memcpy(&value, bytes.data(), 4);
  std::memcpy(&result, &output[at], 4);
  unsigned bit = 0;  // one that carries in the result when flipped
  while (std::popcount(result ^ (result - value + (value ^ (1U << bit)))) == 1) ++bit;
  result = result - value + (value ^ (1U << bit));
  std::memcpy(&output[at], &result, 4);
  const CheckResult found = verify(operation, 0, output);
  EXPECT_EQ(found.wrong, 1);
  EXPECT_THAT(found.diagnosis, HasSubstr(fmt::format("bit {} of rank ", bit)));
  EXPECT_THAT(found.diagnosis, HasSubstr("'s contribution was flipped on the way"));
}
INSTANTIATE_TEST_SUITE_P(VerifyOutput, FlippedOnTheWay, testing::Values(5, 10000));

TEST(Cause, RecognisesTheWrongBlockOfTheRightRank) {
  const Operation operation = all_to_all();
  const auto output = input_bytes(operation, 1, 80000);  // its own input: a no-op in place
  EXPECT_EQ(verify(operation, 1, output).diagnosis,
            "block 0 holds input block 0 of rank 1 instead of input block 1 of rank 0");
}

TEST(Cause, RecognisesABroadcastThatLeftTheOwnData) {
  const Operation operation = broadcast();
  EXPECT_EQ(verify(operation, 3, input_bytes(operation, 3, 20000)).diagnosis,
            "holds its own data: as if rank 3 were the root, or nothing had arrived");
}

TEST(Cause, RecognisesAnAllReduceInPlaceThatDidNothing) {
  for (const int ranks : {2, 5}) {
    Operation operation = all_reduce(Dtype::f32, Op::sum);
    operation.problem.ranks = ranks;
    EXPECT_EQ(verify(operation, 1, input_bytes(operation, 1, 40000)).diagnosis,
              "holds the input of rank 1, reduced with no other");
  }
}

TEST(Cause, RecognisesAnAverageThatIsASum) {
  Operation sum = all_reduce(Dtype::bf16, Op::sum);
  const auto output = right_output(sum, 0);
  EXPECT_EQ(verify(all_reduce(Dtype::bf16, Op::avg), 0, output).diagnosis, "holds the sum: avg was not divided by 5");
}

TEST(Cause, RecognisesShiftedData) {
  const Operation operation = all_reduce(Dtype::f32, Op::sum);
  auto output = right_output(operation, 0);
  std::memmove(output.data() + 12, output.data(), output.size() - 12);
  EXPECT_EQ(verify(operation, 0, output).diagnosis, "data are shifted: element i holds what belongs to element i-3");
}

TEST(Cause, RecognisesOneFlippedBit) {
  const Operation operation = all_reduce(Dtype::i32, Op::sum);
  auto output = right_output(operation, 0);
  output[4 * 4321 + 1] ^= std::byte{0x20};
  const CheckResult result = verify(operation, 0, output);
  EXPECT_EQ(result.wrong, 1);
  EXPECT_EQ(result.first_bad, 4321);
  EXPECT_EQ(result.diagnosis, "one bit differs: bit 13");
}

TEST(Cause, RecognisesZeros) {
  const Operation operation = broadcast();
  EXPECT_EQ(verify(operation, 0, std::vector<std::byte>(20000)).diagnosis, "holds zeros");
}

TEST(Cause, ClaimsNoCauseForNoise) {
  const Operation operation = all_reduce(Dtype::f32, Op::sum);
  auto output = right_output(operation, 0);
  for (std::size_t i = 0; i < output.size(); i += 4) output[i] ^= static_cast<std::byte>(3U + i / 4 % 97);
  const CheckResult result = verify(operation, 0, output);
  EXPECT_GT(result.wrong, 9000);
  EXPECT_EQ(result.diagnosis, "");
}

}  // namespace
}  // namespace tutti::harness::verify
