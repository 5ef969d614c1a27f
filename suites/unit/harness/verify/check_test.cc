// SPDX-License-Identifier: Apache-2.0
// The verifier seen failing: every kind of corruption is put into a right output and must come out with its diagnosis.
#include "harness/verify/check.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/verify/buffers.h"
#include "harness/verify/diagnose.h"
#include "harness/verify/suspect.h"

namespace tutti::harness {
namespace {

using testing::HasSubstr;

std::vector<std::byte> right_output(const Operation& operation, int rank) {
  const std::size_t block_bytes = static_cast<std::size_t>(operation.count) * size_of(operation.dtype);
  const auto blocks = static_cast<std::size_t>(output_blocks(operation.problem, rank));
  std::vector<std::byte> bytes(blocks * block_bytes);
  for (std::size_t block = 0; block < blocks; ++block) {
    fill_expected(std::span(bytes).subspan(block * block_bytes, block_bytes), operation,
                  {.rank = rank, .block = static_cast<int>(block)});
  }
  return bytes;
}

std::vector<std::byte> input_bytes(const Operation& operation, int rank, std::size_t bytes) {
  std::vector<std::byte> values(bytes);
  fill_input(values, input_of(operation, rank));
  return values;
}

CheckResult verify(const Operation& operation, int rank, const std::vector<std::byte>& bytes) {
  Oracle oracle(operation);
  return verify_output(oracle, {.rank = rank, .bytes = bytes});
}

Operation all_reduce(Dtype dtype, Op op, Count count = 10000) {
  return {.problem = {.collective = Collective::all_reduce, .ranks = 5},
          .dtype = dtype,
          .op = op,
          .count = count,
          .salt = 8};
}
Operation all_to_all(Count count = 5000) {
  return {.problem = {.collective = Collective::all_to_all, .ranks = 4}, .count = count, .salt = 8};
}
Operation broadcast(Count count = 5000) {
  return {.problem = {.collective = Collective::broadcast, .ranks = 4, .root = 2}, .count = count, .salt = 8};
}

/// What all_reduce gives where `suspect` contributes `weight` times, by arithmetic of this test.
template <class T>
T weighted_element(const std::vector<T>& column, Op op, int suspect, int weight) {
  // Numbers in double, where the inputs' results are exact; integers and their bits modulo 2^64.
  using Wide = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;
  const auto wide = [](T value) {
    if constexpr (std::is_arithmetic_v<T>) {
      return static_cast<Wide>(value);
    } else {
      return static_cast<Wide>(value.to_float());
    }
  };
  const auto less = [&](Wide a, Wide b) {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(a) < static_cast<T>(b);
    return a < b;
  };
  std::vector<Wide> values;
  for (std::size_t rank = 0; rank < column.size(); ++rank) {
    const int times = static_cast<int>(rank) == suspect ? weight : 1;
    const auto factor = static_cast<Wide>(op == Op::premul_sum ? factor_of(static_cast<int>(rank)) : 1);
    for (int i = 0; i < times; ++i) values.push_back(wide(column[rank]) * factor);
  }
  Wide total = values[0];
  for (std::size_t i = 1; i < values.size(); ++i) {
    const Wide value = values[i];
    if (combining(op) == Op::sum) total += value;
    if (op == Op::prod) total *= value;
    if (op == Op::min) total = less(value, total) ? value : total;
    if (op == Op::max) total = less(total, value) ? value : total;
    if constexpr (std::is_integral_v<T>) {
      if (op == Op::band) total &= value;
      if (op == Op::bor) total |= value;
      if (op == Op::bxor) total ^= value;
    }
  }
  const auto ranks = static_cast<int>(column.size());
  if constexpr (std::is_integral_v<T>) {
    const T wrapped = static_cast<T>(total);
    return op == Op::avg ? static_cast<T>(wrapped / static_cast<std::common_type_t<T, int>>(ranks)) : wrapped;
  } else if constexpr (std::is_same_v<T, double>) {
    return op == Op::avg ? total / ranks : total;
  } else {
    const auto sum = static_cast<float>(total);
    const float value = op == Op::avg ? sum / static_cast<float>(ranks) : sum;
    if constexpr (std::is_same_v<T, float>) {
      return value;
    } else {
      return T::from_float(value);
    }
  }
}

template <class T>
std::vector<std::byte> weighted_output(const Operation& operation, int suspect, int weight) {
  const auto n = static_cast<std::size_t>(operation.count);
  std::vector<std::vector<T>> inputs;
  for (int rank = 0; rank < operation.problem.ranks; ++rank) {
    inputs.emplace_back(n);
    fill_input(std::as_writable_bytes(std::span(inputs.back())), input_of(operation, rank));
  }
  std::vector<T> result(n);
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<T> column;
    for (const auto& input : inputs) column.push_back(input[i]);
    result[i] = weighted_element(column, operation.op, suspect, weight);
  }
  const auto bytes = std::as_bytes(std::span(result));
  return {bytes.begin(), bytes.end()};
}
std::vector<std::byte> weighted(const Operation& operation, int suspect, int weight) {
  return visit_dtype(operation.dtype,
                     [&]<class T>(std::type_identity<T>) { return weighted_output<T>(operation, suspect, weight); });
}

std::vector<Operation> every_all_reduce() {
  std::vector<Operation> operations;
  for (const Dtype dtype : all_dtypes()) {
    for (const Op op : all_ops()) {
      if (op_exists(op, dtype)) operations.push_back(all_reduce(dtype, op));
    }
  }
  return operations;
}
std::string name_of(const Operation& operation) {
  return fmt::format("{} {}", to_string(operation.dtype), to_string(operation.op));
}
/// Elements of few bits, and quotients of few, may be right by chance.
bool is_coarse(const Operation& operation) { return size_of(operation.dtype) == 1; }

TEST(VerifyOutput, AcceptsWhatIsRightForEveryDtypeAndOp) {
  for (const Operation& operation : every_all_reduce()) {
    const CheckResult result = verify(operation, 3, weighted(operation, 0, 1));
    EXPECT_TRUE(result.is_ok()) << name_of(operation) << ": " << result.text();
    EXPECT_EQ(result.checked, 10000);
  }
  EXPECT_TRUE(verify(all_to_all(), 1, right_output(all_to_all(), 1)).is_ok());
  EXPECT_EQ(verify(all_to_all(), 1, right_output(all_to_all(), 1)).checked, 20000);
  EXPECT_TRUE(verify(broadcast(), 1, input_bytes(broadcast(), 2, 20000)).is_ok());
}

TEST(VerifyOutput, OfNoElementsChecksNone) {
  const CheckResult result = verify(all_reduce(Dtype::f32, Op::sum, 0), 0, {});
  EXPECT_TRUE(result.is_ok());
  EXPECT_EQ(result.checked, 0);
}

TEST(VerifyOutput, NamesTheRankWhoseContributionIsMissing) {
  for (const Operation& operation : every_all_reduce()) {
    const CheckResult result = verify(operation, 1, weighted(operation, 3, 0));
    const bool is_added = combining(operation.op) == Op::sum || operation.op == Op::prod;
    const Count least = !is_added ? 1000 : is_coarse(operation) && operation.op == Op::avg ? 5000 : 9000;
    EXPECT_GT(result.wrong, least) << name_of(operation);
    EXPECT_EQ(result.diagnosis, "rank 3's contribution is missing") << name_of(operation);
  }
}

TEST(VerifyOutput, NamesTheRankThatIsCountedTwice) {
  for (const Operation& operation : every_all_reduce()) {
    if (operation.op != Op::sum && operation.op != Op::avg && operation.op != Op::prod) continue;
    EXPECT_EQ(verify(operation, 1, weighted(operation, 2, 2)).diagnosis, "rank 2's contribution is counted twice")
        << name_of(operation);
  }
}

TEST(VerifyOutput, NamesTheRankThatContributedStaleData) {
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

TEST(VerifyOutput, SaysThatNothingWasWritten) {
  for (const Operation& operation : {all_reduce(Dtype::bf16, Op::sum), all_reduce(Dtype::f64, Op::sum),
                                     all_reduce(Dtype::f16, Op::sum), all_to_all(), broadcast()}) {
    auto output = right_output(operation, 1);
    fill_poison(output, operation.salt);
    const CheckResult result = verify(operation, 1, output);
    EXPECT_EQ(result.wrong, result.checked);
    EXPECT_EQ(result.diagnosis, "output still holds the poison: nothing was written");
  }
}

TEST(VerifyOutput, SaysThatTheLastElementWasNotWritten) {
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

TEST(VerifyOutput, SaysThatElementsWereNotWrittenAlsoWhereOneWasInPart) {
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

TEST(VerifyOutput, RecognisesPreviousDataAndPreviousPoison) {
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

TEST(VerifyOutput, RecognisesSwappedBlocks) {
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

TEST(VerifyOutput, RecognisesSwappedPartsOfABlock) {
  for (const Operation& operation : {all_reduce(Dtype::f32, Op::sum), broadcast(10000)}) {
    auto output = right_output(operation, 3);
    std::swap_ranges(output.begin(), output.begin() + 20000, output.begin() + 20000);
    EXPECT_EQ(verify(operation, 3, output).diagnosis,
              "parts of block 0 are swapped: from element 0 on lies what belongs 5000 elements later");
  }
}

TEST(VerifyOutput, TellsSwappedPartsFromACountThatIsOneTooLarge) {
  Operation operation = all_reduce(Dtype::f32, Op::sum, 6);
  operation.problem = {.collective = Collective::reduce_scatter, .ranks = 4};
  auto output = right_output(operation, 3);
  std::swap_ranges(output.begin(), output.begin() + 12, output.begin() + 12);
  EXPECT_EQ(verify(operation, 3, output).diagnosis,
            "parts of block 0 are swapped: from element 0 on lies what belongs 3 elements later");
}

TEST(VerifyOutput, NamesTheRankWhoseBlockIsMissing) {
  const Operation operation = all_to_all();
  auto output = right_output(operation, 3);
  fill_poison(std::span(output).subspan(40000, 20000), operation.salt);
  EXPECT_EQ(verify(operation, 3, output).diagnosis, "block 2 was not written: rank 2's contribution is missing");
}

TEST(VerifyOutput, NamesSeveralRanksThatAreMissing) {
  const Operation operation = all_reduce(Dtype::i32, Op::sum);
  auto output = right_output(operation, 0);
  for (std::size_t at = 0; at < output.size(); at += 4) {
    std::int32_t result = 0;
    std::memcpy(&result, &output[at], 4);
    for (const int rank : {1, 4}) {
      std::array<std::byte, 4> bytes;
      fill_input(bytes, input_of(operation, rank), static_cast<Count>(at / 4));
      std::int32_t value = 0;
      std::memcpy(&value, bytes.data(), 4);
      result = static_cast<std::int32_t>(static_cast<std::uint32_t>(result) - static_cast<std::uint32_t>(value));
    }
    std::memcpy(&output[at], &result, 4);
  }
  EXPECT_EQ(verify(operation, 0, output).diagnosis, "the contributions of ranks 1 and 4 are missing");
}

TEST(VerifyOutput, NamesSeveralRanksThatAreCountedTwice) {
  const Operation operation = all_reduce(Dtype::i32, Op::sum);
  auto output = right_output(operation, 0);
  for (std::size_t at = 0; at < output.size(); at += 4) {
    std::uint32_t result = 0;
    std::memcpy(&result, &output[at], 4);
    for (const int rank : {0, 1, 4}) {
      std::uint32_t value = 0;
      std::array<std::byte, 4> bytes;
      fill_input(bytes, input_of(operation, rank), static_cast<Count>(at / 4));
      std::memcpy(&value, bytes.data(), 4);
      result += value;
    }
    std::memcpy(&output[at], &result, 4);
  }
  EXPECT_EQ(verify(operation, 0, output).diagnosis, "the contributions of ranks 0 and 1 and 4 are counted twice");
}

TEST(VerifyOutput, NamesTheRankThatContributedStaleDataWhereTheSumIsRoundedOnItsWay) {
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

TEST(VerifyOutput, NamesAnotherRoot) {
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

TEST(VerifyOutput, NamesACountThatIsOneTooSmallOrTooLarge) {
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

TEST(VerifyOutput, NamesATypeThatIsTooNarrow) {
  const Operation operation = all_reduce(Dtype::f32, Op::sum);
  auto output = right_output(operation, 1);
  for (std::size_t at = 0; at < output.size(); at += 4) output[at] = output[at + 1] = std::byte{0};  // bfloat16
  EXPECT_EQ(verify(operation, 1, output).diagnosis,
            "no wrong result has more than 8 of float's 24 bits: reduced in too narrow a type");
}

TEST(VerifyOutput, NamesAMessageThatWasLost) {
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
  unsigned bit = 0;  // one whose flip carries in the result
  while (std::popcount(result ^ (result - value + (value ^ (1U << bit)))) == 1) ++bit;
  result = result - value + (value ^ (1U << bit));
  std::memcpy(&output[at], &result, 4);
  const CheckResult found = verify(operation, 0, output);
  EXPECT_EQ(found.wrong, 1);
  EXPECT_THAT(found.diagnosis, HasSubstr(fmt::format("bit {} of rank ", bit)));
  EXPECT_THAT(found.diagnosis, HasSubstr("'s contribution was flipped on the way"));
}
INSTANTIATE_TEST_SUITE_P(VerifyOutput, FlippedOnTheWay, testing::Values(5, 10000));

TEST(VerifyOutput, RecognisesTheWrongBlockOfTheRightRank) {
  const Operation operation = all_to_all();
  const auto output = input_bytes(operation, 1, 80000);  // its own input: a no-op in place
  EXPECT_EQ(verify(operation, 1, output).diagnosis,
            "block 0 holds input block 0 of rank 1 instead of input block 1 of rank 0");
}

TEST(VerifyOutput, RecognisesABroadcastThatLeftTheOwnData) {
  const Operation operation = broadcast();
  EXPECT_EQ(verify(operation, 3, input_bytes(operation, 3, 20000)).diagnosis,
            "holds its own data: as if rank 3 were the root, or nothing had arrived");
}

TEST(VerifyOutput, RecognisesAnAllReduceInPlaceThatDidNothing) {
  for (const int ranks : {2, 5}) {
    Operation operation = all_reduce(Dtype::f32, Op::sum);
    operation.problem.ranks = ranks;
    EXPECT_EQ(verify(operation, 1, input_bytes(operation, 1, 40000)).diagnosis,
              "holds the input of rank 1, reduced with no other");
  }
}

TEST(VerifyOutput, RecognisesAnAverageThatIsASum) {
  Operation sum = all_reduce(Dtype::bf16, Op::sum);
  const auto output = right_output(sum, 0);
  EXPECT_EQ(verify(all_reduce(Dtype::bf16, Op::avg), 0, output).diagnosis, "holds the sum: avg was not divided by 5");
}

TEST(VerifyOutput, RecognisesShiftedData) {
  const Operation operation = all_reduce(Dtype::f32, Op::sum);
  auto output = right_output(operation, 0);
  std::memmove(output.data() + 12, output.data(), output.size() - 12);
  EXPECT_EQ(verify(operation, 0, output).diagnosis, "data are shifted: element i holds what belongs to element i-3");
}

TEST(VerifyOutput, RecognisesOneFlippedBit) {
  const Operation operation = all_reduce(Dtype::i32, Op::sum);
  auto output = right_output(operation, 0);
  output[4 * 4321 + 1] ^= std::byte{0x20};
  const CheckResult result = verify(operation, 0, output);
  EXPECT_EQ(result.wrong, 1);
  EXPECT_EQ(result.first_bad, 4321);
  EXPECT_EQ(result.diagnosis, "one bit differs: bit 13");
}

TEST(VerifyOutput, RecognisesZeros) {
  const Operation operation = broadcast();
  EXPECT_EQ(verify(operation, 0, std::vector<std::byte>(20000)).diagnosis, "holds zeros");
}

TEST(VerifyOutput, ClaimsNoCauseForNoise) {
  const Operation operation = all_reduce(Dtype::f32, Op::sum);
  auto output = right_output(operation, 0);
  for (std::size_t i = 0; i < output.size(); i += 4) output[i] ^= static_cast<std::byte>(3U + i / 4 % 97);
  const CheckResult result = verify(operation, 0, output);
  EXPECT_GT(result.wrong, 9000);
  EXPECT_EQ(result.diagnosis, "");
}

TEST(VerifyOutput, TextHasTheNumbers) {
  EXPECT_EQ(element_text(0x40a00000U, Dtype::f32), "5 (0x40a00000)");
  EXPECT_EQ(element_text(0xffffffffU, Dtype::i32), "-1 (0xffffffff)");
  EXPECT_EQ(element_text(0x3fc0U, Dtype::bf16), "1.5 (0x3fc0)");
  const CheckResult result{.checked = 64,
                           .wrong = 3,
                           .first_bad = 12,
                           .last_bad = 20,
                           .expected = "5",
                           .actual = "6",
                           .diagnosis = "rank 3's contribution is missing"};
  EXPECT_EQ(result.text(),
            "3 of 64 wrong, the first at 12, the last at 20: expected 5, actual 6; rank 3's contribution is missing");
}

TEST(VerifyInput, NoticesOneChangedElement) {
  const Operation operation = all_to_all();
  auto input = input_bytes(operation, 2, 80000);
  EXPECT_TRUE(verify_input_unchanged(operation, {.rank = 2, .bytes = input}).is_ok());
  EXPECT_EQ(verify_input_unchanged(operation, {.rank = 2, .bytes = input}).checked, 20000);
  EXPECT_FALSE(verify_input_unchanged(operation, {.rank = 1, .bytes = input}).is_ok());
  input[4 * 17000] ^= std::byte{1};
  const CheckResult result = verify_input_unchanged(operation, {.rank = 2, .bytes = input});
  EXPECT_EQ(result.wrong, 1);
  EXPECT_EQ(result.first_bad, 17000);
  EXPECT_THAT(result.diagnosis, HasSubstr("wrote into the input of rank 2"));
}

TEST(Barrier, HoldsWhenNobodyLeavesBeforeTheLastHasEntered) {
  EXPECT_TRUE(check_barrier({.first_leave_ns = 101, .last_enter_ns = 100}).is_ok());
  const CheckResult at_once = check_barrier({.first_leave_ns = 100, .last_enter_ns = 100});
  EXPECT_TRUE(at_once.is_ok());
  EXPECT_EQ(at_once.checked, 1);
}

TEST(Barrier, IsBrokenByOneRankThatLeavesTooEarly) {
  const CheckResult result = check_barrier({.first_leave_ns = 1499, .last_enter_ns = 1500});
  EXPECT_EQ(result.wrong, 1);
  EXPECT_EQ(result.first_bad, 0);
  EXPECT_EQ(result.diagnosis, "a rank left the barrier 1 ns before the last one had entered");
  EXPECT_EQ(result.text(),
            "1 of 1 wrong, the first at 0, the last at 0: expected no rank leaves before 1500 ns, actual left at "
            "1499 ns; a rank left the barrier 1 ns before the last one had entered");
}

}  // namespace
}  // namespace tutti::harness
