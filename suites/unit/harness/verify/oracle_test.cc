// SPDX-License-Identifier: Apache-2.0
#include "harness/verify/oracle.h"

#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "harness/verify/accumulation.h"

namespace tutti::harness::verify {
namespace {

/// Reduces literals with the oracle's arithmetic, in rank order.
template <class T>
T reduced(const std::vector<T>& values, Op op) {
  auto total = Accumulation<T>::load(values.front());
  for (std::size_t i = 1; i < values.size(); ++i) total = combine<T>(total, values[i], op);
  return finish<T>(total, op, static_cast<int>(values.size()));
}
BFloat16 bf16(float value) { return BFloat16::from_float(value); }

TEST(Accumulation, ReducesLiterals) {
  EXPECT_EQ(reduced<float>({1, -5, 3}, Op::sum), -1.0F);
  EXPECT_EQ(reduced<float>({1, -5, 3}, Op::max), 3.0F);
  EXPECT_EQ(reduced<float>({-1, -5, -3}, Op::max), -1.0F);
  EXPECT_EQ(reduced<float>({1, -5, 3}, Op::avg), -1.0F / 3.0F);
  EXPECT_EQ(reduced<std::int32_t>({2147483647, 1}, Op::sum), -2147483647 - 1);
  EXPECT_EQ(reduced<std::int32_t>({-7, 3, 100}, Op::max), 100);
  EXPECT_EQ(reduced<std::int32_t>({-7, 3, -100}, Op::max), 3);
  EXPECT_EQ(reduced<std::int32_t>({-7, 0, 0}, Op::avg), -2);
  EXPECT_EQ(reduced<std::int32_t>({7, 1, 0}, Op::avg), 2);
  EXPECT_EQ(reduced<BFloat16>({bf16(100), bf16(-1), bf16(27)}, Op::sum).to_float(), 126.0F);
  EXPECT_EQ(reduced<BFloat16>({bf16(100), bf16(-1), bf16(27)}, Op::max).to_float(), 100.0F);
  EXPECT_EQ(reduced<float>({1.5F, -5, 3}, Op::prod), -22.5F);
  EXPECT_EQ(reduced<double>({0x1p53, 2, -0x1p53}, Op::sum), 2.0);
  EXPECT_EQ(reduced<double>({1, 0, 0}, Op::avg), 1.0 / 3.0);
  EXPECT_EQ(reduced<std::int8_t>({127, 1}, Op::sum), -128);
  EXPECT_EQ(reduced<std::int8_t>({-128, -1}, Op::prod), -128);
  EXPECT_EQ(reduced<std::int8_t>({100, 100}, Op::avg), -28);
  EXPECT_EQ(reduced<std::int8_t>({-1, 1}, Op::min), -1);
  EXPECT_EQ(reduced<std::uint8_t>({255, 1}, Op::min), 1);
  EXPECT_EQ(reduced<std::uint8_t>({200, 100}, Op::avg), 22);
  EXPECT_EQ(reduced<std::uint8_t>({0x6c, 0x5f}, Op::band), 0x4c);
  EXPECT_EQ(reduced<std::int32_t>({0x6c, 0x5f}, Op::bor), 0x7f);
  EXPECT_EQ(reduced<std::int64_t>({0x6c, 0x5f}, Op::bxor), 0x33);
  EXPECT_EQ(reduced<std::uint32_t>({4294967295U, 4294967295U}, Op::prod), 1U);
  EXPECT_EQ(reduced<std::int64_t>({-9, 2, 2}, Op::avg), -1);
  EXPECT_EQ(reduced<std::uint64_t>({~std::uint64_t{0}, 2}, Op::max), ~std::uint64_t{0});
  EXPECT_EQ((reduced<Half>({Half::from_float(2049), Half::from_float(1), Half::from_float(1)}, Op::sum).bits),
            Half::from_float(2050).bits);
  EXPECT_EQ((reduced<Float8E4M3>({Float8E4M3{0x7e}, Float8E4M3{0x7e}}, Op::avg).bits), 0x7e);
  EXPECT_EQ((reduced<Float8E4M3>({Float8E4M3{0x7e}, Float8E4M3{0x7e}}, Op::sum).bits), 0x7e);
  EXPECT_EQ((reduced<Float8E5M2>({Float8E5M2{0x3c}, Float8E5M2{0xc0}}, Op::min).to_float()), -2.0F);
  EXPECT_EQ(reduced<float>({1, -5, 3}, Op::premul_sum), -1.0F);  // of what was multiplied already
  EXPECT_EQ(scaled(1.5F, 2), 3.0F);
  EXPECT_EQ(scaled(std::int8_t{100}, 2), -56);
  EXPECT_EQ(scaled(bf16(-1.25F), 4).to_float(), -5.0F);
  // 1/3 in bfloat16 is 0x3eab: rounded to nearest, not truncated (0x3eaa).
  EXPECT_EQ(reduced<BFloat16>({bf16(1), bf16(2), bf16(-2)}, Op::avg).bits, 0x3eab);
}

template <class T>
std::vector<T> expected(const Operation& operation, const BlockPart& part, std::size_t elements) {
  std::vector<T> values(elements);
  fill_expected(std::as_writable_bytes(std::span(values)), operation, part);
  return values;
}
template <class T>
std::vector<T> input(const Operation& operation, int rank, Count first, std::size_t elements) {
  std::vector<T> values(elements);
  fill_input(std::as_writable_bytes(std::span(values)), input_of(operation, rank), first);
  return values;
}

TEST(Oracle, SumsTheInputsOfAllRanks) {
  const Operation operation{
      .problem = {.collective = Collective::all_reduce, .ranks = 3}, .op = Op::sum, .count = 9000};
  const auto a = input<float>(operation, 0, 0, 9000);
  const auto b = input<float>(operation, 1, 0, 9000);
  const auto c = input<float>(operation, 2, 0, 9000);
  const auto all = expected<float>(operation, {.rank = 1}, 9000);
  for (std::size_t i = 0; i < 9000; ++i) ASSERT_EQ(all[i], a[i] + b[i] + c[i]) << i;
  const auto part = expected<float>(operation, {.rank = 1, .first = 5000}, 10);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + 5000));
}

TEST(Oracle, SumsTheInputsUpToTheRankOfAScanAndBeforeItOfAnExscan) {
  for (const Collective collective : {Collective::scan, Collective::exscan}) {
    const Operation operation{.problem = {.collective = collective, .ranks = 4}, .op = Op::sum, .count = 5000};
    Oracle oracle(operation);
    std::vector<float> sums(5000);
    for (int rank = 0; rank < 4; ++rank) {
      const auto own = input<float>(operation, rank, 0, 5000);
      const auto before = sums;
      for (std::size_t i = 0; i < own.size(); ++i) sums[i] = rank == 0 ? own[i] : sums[i] + own[i];
      if (collective == Collective::exscan && rank == 0) continue;  // has no output
      const auto& right = collective == Collective::scan ? sums : before;
      EXPECT_EQ(expected<float>(operation, {.rank = rank}, 5000), right) << rank;
      EXPECT_EQ(std::memcmp(oracle.expect({.rank = rank}, 4096).data(), right.data(), 4096 * sizeof(float)), 0);
    }
  }
}

TEST(Oracle, KeepsEveryBitWhereOneRankContributes) {
  const Operation scan{.problem = {.collective = Collective::scan, .ranks = 3},
                       .dtype = Dtype::f8e5m2,
                       .op = Op::max,
                       .count = 1000,
                       .values = Values::special};
  const auto bits = [](const std::vector<Float8E5M2>& values) {
    std::vector<int> all;
    for (const Float8E5M2 value : values) all.push_back(value.bits);
    return all;
  };
  EXPECT_EQ(bits(expected<Float8E5M2>(scan, {.rank = 0}, 1000)), bits(input<Float8E5M2>(scan, 0, 0, 1000)));
}

TEST(Oracle, TakesABroadcastFromTheRoot) {
  const Operation operation{.problem = {.collective = Collective::broadcast, .ranks = 4, .root = 2}, .count = 100};
  EXPECT_EQ(expected<float>(operation, {.rank = 0, .first = 10}, 90), input<float>(operation, 2, 10, 90));
}

TEST(Oracle, TakesBlockJOfAnAllToAllFromBlockROfRankJ) {
  const Operation operation{
      .problem = {.collective = Collective::all_to_all, .ranks = 4}, .dtype = Dtype::i32, .count = 100};
  EXPECT_EQ(expected<std::int32_t>(operation, {.rank = 1, .block = 3, .first = 5}, 95),
            input<std::int32_t>(operation, 3, 105, 95));
}

TEST(Oracle, GivesTheSameChunksAsFillExpectedInAnyOrder) {
  const Operation operation{.problem = {.collective = Collective::all_reduce, .ranks = 3},
                            .dtype = Dtype::bf16,
                            .op = Op::avg,
                            .count = 9000};
  const auto all = expected<BFloat16>(operation, {}, 9000);
  Oracle oracle(operation);
  for (const Count first : {Count{8192}, Count{0}, Count{4096}, Count{0}}) {
    const Count elements = std::min<Count>(Oracle::kChunk, 9000 - first);
    const auto bytes = oracle.expect({.rank = 2, .first = first}, elements);
    ASSERT_EQ(bytes.size(), static_cast<std::size_t>(elements) * 2);
    EXPECT_EQ(std::memcmp(bytes.data(), all.data() + first, bytes.size()), 0) << first;
  }
}

TEST(Oracle, DoesNotMixUpBlocksOfAnAllToAll) {
  const Operation operation{.problem = {.collective = Collective::all_to_all, .ranks = 2}, .count = 10};
  Oracle oracle(operation);
  for (const int block : {0, 1, 0}) {
    const auto all = expected<float>(operation, {.rank = 1, .block = block}, 10);
    EXPECT_EQ(std::memcmp(oracle.expect({.rank = 1, .block = block}, 10).data(), all.data(), 40), 0) << block;
  }
}

}  // namespace
}  // namespace tutti::harness::verify
