// SPDX-License-Identifier: Apache-2.0
#include "harness/verify/inputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness {
namespace {

template <class T>
std::vector<T> input(const InputSpec& spec, std::size_t elements, Count first = 0) {
  std::vector<T> values(elements);
  fill_input(std::as_writable_bytes(std::span(values)), spec, first);
  return values;
}

template <class T>
double number(T value) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return value.to_float();
  } else {
    return static_cast<double>(value);
  }
}

/// The definition is part of what makes two results comparable: these literals pin it.
TEST(Inputs, AreTheLiteralsTheyWere) {
  EXPECT_EQ(input<float>({.op = Op::sum, .ranks = 4, .rank = 2, .seed = 7, .salt = 3}, 3),
            (std::vector<float>{-171875, 167363, -80425}));
  EXPECT_EQ(input<std::int32_t>({.dtype = Dtype::i32, .ranks = 4, .rank = 2, .seed = 7, .salt = 3}, 3),
            (std::vector<std::int32_t>{-1051847316, 1329928750, -1037527068}));
}

TEST(Inputs, DoNotDependOnTheChunkOrAlignmentInWhichTheyAreFilled) {
  const InputSpec spec{.op = Op::sum, .ranks = 3, .rank = 1};
  const std::vector<float> whole = input<float>(spec, 5000);
  const std::vector<float> part = input<float>(spec, 1500, 777);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 777));
  std::vector<std::byte> odd(5000 * sizeof(float) + 1);
  fill_input(std::span(odd).subspan(1), spec);
  EXPECT_EQ(std::memcmp(odd.data() + 1, whole.data(), 5000 * sizeof(float)), 0);
}

TEST(Inputs, ContinueBeyondTwoToThe32Elements) {
  const InputSpec spec{.dtype = Dtype::i32, .op = Op::sum, .ranks = 3, .rank = 1};
  const Count edge = Count{1} << 32;
  const std::vector<std::int32_t> across = input<std::int32_t>(spec, 8, edge - 4);
  const std::vector<std::int32_t> before = input<std::int32_t>(spec, 4, edge - 4);
  const std::vector<std::int32_t> after = input<std::int32_t>(spec, 4, edge);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), across.begin()));
  EXPECT_TRUE(std::equal(after.begin(), after.end(), across.begin() + 4));
  EXPECT_NE(after, input<std::int32_t>(spec, 4, 0));
}

template <class T>
void expect_differs_by_rank_salt_seed_and_index(InputSpec spec) {
  // bfloat16 has few values: a fifth of the elements may agree by chance.
  const auto agreeing = [](const std::vector<T>& a, const std::vector<T>& b) {
    std::size_t same = 0;
    for (std::size_t i = 0; i < a.size(); ++i) same += std::memcmp(&a[i], &b[i], sizeof(T)) == 0 ? 1 : 0;
    return same;
  };
  const std::vector<T> base = input<T>(spec, 1000);
  for (int rank = 0; rank < spec.ranks; ++rank) {
    InputSpec other = spec;
    other.rank = rank;
    if (rank == spec.rank) continue;
    EXPECT_LT(agreeing(base, input<T>(other, 1000)), 200U) << "rank " << rank;
  }
  EXPECT_LT(agreeing(base, input<T>(spec, 1000, 1)), 200U);
  ++spec.salt;
  EXPECT_LT(agreeing(base, input<T>(spec, 1000)), 200U);
  --spec.salt;
  ++spec.seed;
  EXPECT_LT(agreeing(base, input<T>(spec, 1000)), 200U);
}

TEST(Inputs, DifferByRankSaltSeedAndIndex) {
  for (const Op op : {Op::none, Op::sum, Op::max, Op::avg}) {
    const InputSpec spec{.op = op, .ranks = 8, .rank = 3};
    expect_differs_by_rank_salt_seed_and_index<float>(spec);
    expect_differs_by_rank_salt_seed_and_index<std::int32_t>({.dtype = Dtype::i32, .op = op, .ranks = 8, .rank = 3});
    expect_differs_by_rank_salt_seed_and_index<BFloat16>({.dtype = Dtype::bf16, .op = op, .ranks = 8, .rank = 3});
  }
}

/// Adds in T, rounding after every addition, in a random order, and compares with the sum in double.
template <class T>
void expect_sums_are_exact(Dtype dtype, int ranks) {
  std::vector<std::vector<T>> inputs;
  for (int rank = 0; rank < ranks; ++rank) {
    inputs.push_back(input<T>({.dtype = dtype, .op = Op::sum, .ranks = ranks, .rank = rank}, 64));
  }
  std::mt19937 random(1);
  for (int trial = 0; trial < 20; ++trial) {
    std::shuffle(inputs.begin(), inputs.end(), random);
    for (std::size_t i = 0; i < 64; ++i) {
      double exact = 0;
      T total{};
      for (const std::vector<T>& values : inputs) {
        ASSERT_NE(number(values[i]), 0.0);
        exact += number(values[i]);
        if constexpr (std::is_same_v<T, BFloat16>) {
          total = BFloat16::from_float(total.to_float() + values[i].to_float());
        } else {
          total += values[i];
        }
        ASSERT_EQ(number(total), exact) << ranks << " ranks";
      }
    }
  }
}

TEST(Inputs, OfSumsAreNonZeroAndEveryPartialSumInAnyOrderIsExact) {
  for (const int ranks : {1, 2, 3, 5, 8, 129, 512}) {
    expect_sums_are_exact<BFloat16>(Dtype::bf16, ranks);
    expect_sums_are_exact<float>(Dtype::f32, ranks);
  }
}

TEST(Inputs, OfSumsHaveSubsetSumsWithinTheSignificand) {
  for (const int ranks : {2, 3, 7, 64, 511, 512}) {
    std::vector<double> positive(256);
    std::vector<double> negative(256);
    for (int rank = 0; rank < ranks; ++rank) {
      const auto values = input<BFloat16>({.dtype = Dtype::bf16, .op = Op::avg, .ranks = ranks, .rank = rank}, 256);
      for (std::size_t i = 0; i < 256; ++i) {
        (values[i].to_float() > 0 ? positive : negative)[i] += std::abs(values[i].to_float());
      }
    }
    EXPECT_LE(*std::max_element(positive.begin(), positive.end()), 256.0) << ranks;
    EXPECT_LE(*std::max_element(negative.begin(), negative.end()), 256.0) << ranks;
  }
}

TEST(Inputs, OfMaxAreDistinctAmongRanksAndEveryRankWinsSomewhere) {
  constexpr int kRanks = 16;
  std::vector<std::vector<BFloat16>> inputs;
  for (int rank = 0; rank < kRanks; ++rank) {
    inputs.push_back(input<BFloat16>({.dtype = Dtype::bf16, .op = Op::max, .ranks = kRanks, .rank = rank}, 1000));
  }
  std::set<int> winners;
  for (std::size_t i = 0; i < 1000; ++i) {
    std::set<std::uint16_t> values;
    int winner = 0;
    for (int rank = 0; rank < kRanks; ++rank) {
      const auto& input = inputs[static_cast<std::size_t>(rank)];
      ASSERT_TRUE(std::isnormal(input[i].to_float()));
      values.insert(input[i].bits);
      if (input[i].to_float() > inputs[static_cast<std::size_t>(winner)][i].to_float()) winner = rank;
    }
    EXPECT_EQ(values.size(), static_cast<std::size_t>(kRanks));
    winners.insert(winner);
  }
  EXPECT_EQ(winners.size(), static_cast<std::size_t>(kRanks));
}

TEST(Inputs, OfIntegersUseTheFullRange) {
  const auto values = input<std::int32_t>({.dtype = Dtype::i32, .op = Op::sum, .ranks = 2, .rank = 0}, 10000);
  EXPECT_LT(*std::min_element(values.begin(), values.end()), -2'140'000'000);
  EXPECT_GT(*std::max_element(values.begin(), values.end()), 2'140'000'000);
}

TEST(Inputs, RefuseWhatCannotBeExactWithTheNumbers) {
  EXPECT_TRUE(supports_inputs(Dtype::bf16, Op::sum, 512).is_ok());
  EXPECT_TRUE(supports_inputs(Dtype::bf16, Op::max, 513).is_ok());
  EXPECT_TRUE(supports_inputs(Dtype::f32, Op::avg, 100000).is_ok());
  EXPECT_TRUE(supports_inputs(Dtype::i32, Op::sum, 100000).is_ok());
  const Status status = supports_inputs(Dtype::bf16, Op::sum, 513);
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_THAT(status.message(), testing::AllOf(testing::HasSubstr("513 ranks"), testing::HasSubstr("up to 256"),
                                               testing::HasSubstr("at most 512")));
  EXPECT_FALSE(supports_inputs(Dtype::f32, Op::sum, 0).is_ok());
}

}  // namespace
}  // namespace tutti::harness
