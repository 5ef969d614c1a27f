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

namespace tutti::harness::verify {
namespace {

template <class T>
std::vector<T> input(const InputSpec& spec, std::size_t elements, Count first = 0) {
  std::vector<T> values(elements);
  fill_input(std::as_writable_bytes(std::span(values)), spec, first);
  return values;
}

template <class T>
double number(T value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(value);
  } else {
    return value.to_float();
  }
}

/// The definition is part of what makes two results comparable: these literals pin it.
TEST(Inputs, AreTheLiteralsTheyWere) {
  EXPECT_EQ(input<float>({.op = Op::sum, .ranks = 4, .rank = 2, .seed = 7, .salt = 3}, 3),
            (std::vector<float>{-85526, 1000731, -141464}));
  EXPECT_EQ(input<std::int32_t>({.dtype = Dtype::i32, .ranks = 4, .rank = 2, .seed = 7, .salt = 3}, 3),
            (std::vector<std::int32_t>{-1051847316, 1329928750, -1037527068}));
  EXPECT_EQ(
      input<std::uint8_t>({.dtype = Dtype::f8e4m3, .op = Op::sum, .ranks = 4, .rank = 2, .seed = 7, .salt = 3}, 4),
      (std::vector<std::uint8_t>{0xd0, 0x44, 0xd0, 0x58}));
  EXPECT_EQ(input<std::uint8_t>({.dtype = Dtype::u8, .ranks = 4, .rank = 2, .seed = 7, .salt = 3}, 5),
            (std::vector<std::uint8_t>{108, 21, 78, 193, 46}));
  EXPECT_EQ(input<double>({.dtype = Dtype::f64, .op = Op::prod, .ranks = 4, .rank = 2, .seed = 7, .salt = 3}, 3),
            (std::vector<double>{0x1p-22, 0x1p27, -0x1p-24}));
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

// Bytes are made four at a time.
TEST(Inputs, OfBytesBeginAnywhere) {
  for (const Op op : {Op::none, Op::sum, Op::max}) {
    const InputSpec spec{.dtype = Dtype::u8, .op = op, .ranks = 3, .rank = 1};
    const std::vector<std::uint8_t> whole = input<std::uint8_t>(spec, 5000);
    for (std::size_t first = 1020; first <= 1028; ++first) {
      for (const std::size_t elements : {1, 2, 3, 4, 5, 1024, 3000}) {
        const auto part = input<std::uint8_t>(spec, elements, static_cast<Count>(first));
        EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(first)))
            << to_string(op) << ", " << elements << " from " << first;
      }
    }
    EXPECT_EQ(std::ranges::count(whole, 0) > 0, op != Op::sum) << "a summand of integers is not 0";
    EXPECT_EQ(std::set(whole.begin(), whole.end()).size(), op == Op::sum ? 255U : 256U);
  }
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
  const auto agreeing = [](const std::vector<T>& a, const std::vector<T>& b) {
    std::size_t same = 0;
    for (std::size_t i = 0; i < a.size(); ++i) same += std::memcmp(&a[i], &b[i], sizeof(T)) == 0 ? 1 : 0;
    return same;
  };
  // Few bits, few values: some elements agree by chance, more of them for ops that take few of the values.
  const bool has_few = sizeof(T) == 1 || (sizeof(T) == 2 && spec.op != Op::none);
  const std::size_t most = has_few ? 600 : 100;
  const std::vector<T> base = input<T>(spec, 1000);
  for (int rank = 0; rank < spec.ranks; ++rank) {
    InputSpec other = spec;
    other.rank = rank;
    if (rank == spec.rank) continue;
    EXPECT_LT(agreeing(base, input<T>(other, 1000)), most) << "rank " << rank;
  }
  EXPECT_LT(agreeing(base, input<T>(spec, 1000, 1)), most);
  ++spec.salt;
  EXPECT_LT(agreeing(base, input<T>(spec, 1000)), most);
  --spec.salt;
  ++spec.seed;
  EXPECT_LT(agreeing(base, input<T>(spec, 1000)), most);
}

TEST(Inputs, DifferByRankSaltSeedAndIndex) {
  for (const Dtype dtype : all_dtypes()) {
    std::vector<Op> ops = all_ops();
    ops.push_back(Op::none);
    for (const Op op : ops) {
      if (!op_exists(op, dtype)) continue;
      SCOPED_TRACE(testing::Message() << to_string(dtype) << " " << to_string(op));
      visit_dtype(dtype, [&]<class T>(std::type_identity<T>) {
        expect_differs_by_rank_salt_seed_and_index<T>({.dtype = dtype, .op = op, .ranks = 8, .rank = 3});
      });
    }
  }
}

TEST(Inputs, OnManyRanksStillDifferBySalt) {
  for (const Op op : {Op::max, Op::min, Op::prod, Op::band, Op::none}) {
    InputSpec spec{.dtype = Dtype::i8, .op = op, .ranks = 600, .rank = 500};
    const auto before = input<std::int8_t>(spec, 1000);
    ++spec.salt;
    EXPECT_NE(before, input<std::int8_t>(spec, 1000)) << to_string(op);
  }
}

/// Reduces in T, rounding after every step, in random orders, and compares with the result in double. `silent` ranks
/// contribute nothing to an element.
template <class T>
void expect_every_order_is_exact(Dtype dtype, Op op, int ranks, int silent) {
  std::vector<std::vector<T>> inputs;
  for (int rank = 0; rank < ranks; ++rank) {
    inputs.push_back(input<T>({.dtype = dtype, .op = op, .ranks = ranks, .rank = rank}, 64));
  }
  std::mt19937 random(1);
  for (int trial = 0; trial < 20; ++trial) {
    std::shuffle(inputs.begin(), inputs.end(), random);
    for (std::size_t i = 0; i < 64; ++i) {
      double exact = op == Op::prod ? 1 : 0;
      T total{};
      int without = 0;
      for (const std::vector<T>& values : inputs) {
        const double value = number(values[i]);
        without += value == (op == Op::prod ? 1.0 : 0.0) ? 1 : 0;
        exact = op == Op::prod ? exact * value : exact + value;
        if constexpr (std::is_arithmetic_v<T>) {
          total = static_cast<T>(exact);
        } else {
          total = T::from_float(static_cast<float>(exact));
        }
        ASSERT_EQ(number(total), exact) << ranks << " ranks";
      }
      ASSERT_EQ(without, silent);
    }
  }
}

TEST(Inputs, OfFloatsAreExactInEveryPartialResultInAnyOrder) {
  for (const Dtype dtype : all_dtypes()) {
    if (is_integer(dtype)) continue;
    const int most = dtype == Dtype::f8e5m2 ? 15 : dtype == Dtype::f8e4m3 ? 31 : dtype == Dtype::bf16 ? 511 : 4095;
    for (const int ranks : {1, 2, 3, 5, 6, 8, 13, 15, 16, 29, 32, 129, 511, 512, 600}) {
      for (const Op op : {Op::sum, Op::avg, Op::prod}) {
        SCOPED_TRACE(testing::Message() << to_string(dtype) << " " << to_string(op));
        const int silent = op == Op::prod ? 0 : std::max(0, ranks - most);
        visit_dtype(dtype, [&]<class T>(std::type_identity<T>) {
          ASSERT_NO_FATAL_FAILURE(expect_every_order_is_exact<T>(dtype, op, ranks, silent));
        });
      }
    }
  }
}

/// Whether in some of the passes from `salt` on every rank has another value than 0 in every element.
template <class T>
void expect_covered(Dtype dtype, Op op, int ranks, std::uint64_t salt) {
  constexpr std::size_t kElements = 64;
  const int passes = passes_of(dtype, op, ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<int> times(kElements);
    for (int pass = 0; pass < passes; ++pass) {
      const auto values = input<T>(
          {.dtype = dtype, .op = op, .ranks = ranks, .rank = rank, .salt = salt + static_cast<std::uint64_t>(pass)},
          kElements, 7);
      for (std::size_t i = 0; i < kElements; ++i) times[i] += number(values[i]) != 0 ? 1 : 0;
    }
    ASSERT_GE(*std::min_element(times.begin(), times.end()), 1)
        << to_string(dtype) << ", rank " << rank << " of " << ranks << ", from salt " << salt;
  }
}

TEST(Inputs, OfNarrowSumsHaveEveryRankInEveryElementInOneOfThePasses) {
  struct Row {
    Dtype dtype;
    int ranks, contributors, passes;
  };
  for (const Row& row :
       {Row{Dtype::f8e5m2, 15, 15, 1}, Row{Dtype::f8e5m2, 16, 15, 2}, Row{Dtype::f8e5m2, 40, 15, 3},
        Row{Dtype::f8e5m2, 257, 15, 18}, Row{Dtype::f8e4m3, 31, 31, 1}, Row{Dtype::f8e4m3, 33, 31, 2},
        Row{Dtype::f8e4m3, 94, 31, 4}, Row{Dtype::bf16, 513, 511, 2}, Row{Dtype::f16, 4096, 4095, 2}}) {
    for (const Op op : {Op::sum, Op::avg, Op::premul_sum}) {
      EXPECT_EQ(contributors_of(row.dtype, op, row.ranks), row.contributors) << to_string(row.dtype);
      EXPECT_EQ(passes_of(row.dtype, op, row.ranks), row.passes) << to_string(row.dtype) << row.ranks;
      if (op != Op::sum && row.ranks > 100) continue;
      visit_dtype(row.dtype, [&]<class T>(std::type_identity<T>) {
        for (const std::uint64_t salt : {std::uint64_t{1}, (std::uint64_t{7} << 32U) - 1}) {
          ASSERT_NO_FATAL_FAILURE(expect_covered<T>(row.dtype, op, row.ranks, salt));
        }
      });
    }
  }
  EXPECT_EQ(passes_of(Dtype::f8e5m2, Op::prod, 4096), 1);
  EXPECT_EQ(passes_of(Dtype::f8e5m2, Op::none, 4096), 1);
  EXPECT_EQ(passes_of(Dtype::f32, Op::sum, 4096), 1);
}

TEST(Inputs, OfSumsHaveSubsetSumsWithinWhatIsExact) {
  const auto expect_within = []<class T>(std::type_identity<T>, Dtype dtype, double limit, int ranks) {
    std::vector<double> positive(256);
    std::vector<double> negative(256);
    for (int rank = 0; rank < ranks; ++rank) {
      const auto values = input<T>({.dtype = dtype, .op = Op::avg, .ranks = ranks, .rank = rank}, 256);
      for (std::size_t i = 0; i < 256; ++i) {
        (number(values[i]) > 0 ? positive : negative)[i] += std::abs(number(values[i]));
      }
    }
    EXPECT_LE(*std::max_element(positive.begin(), positive.end()), limit) << to_string(dtype) << ", " << ranks;
    EXPECT_LE(*std::max_element(negative.begin(), negative.end()), limit) << to_string(dtype) << ", " << ranks;
  };
  for (const int ranks : {2, 3, 7, 16, 64, 511, 512, 700}) {
    expect_within(std::type_identity<BFloat16>{}, Dtype::bf16, 256, ranks);
    expect_within(std::type_identity<Half>{}, Dtype::f16, 2048, ranks);
    expect_within(std::type_identity<Float8E4M3>{}, Dtype::f8e4m3, 8 * 16, ranks);
    expect_within(std::type_identity<Float8E5M2>{}, Dtype::f8e5m2, 8 * 8, ranks);
  }
}

TEST(Inputs, OfPremulSumTimesTheFactorAreThoseOfSum) {
  for (const Dtype dtype : all_dtypes()) {
    if (is_integer(dtype)) continue;
    visit_dtype(dtype, [dtype]<class T>(std::type_identity<T>) {
      for (const int ranks : {1, 2, 7, 600}) {
        const InputSpec sum{.dtype = dtype, .op = Op::sum, .ranks = ranks, .rank = ranks - 1, .salt = 3};
        InputSpec premul = sum;
        premul.op = Op::premul_sum;
        const auto expected = input<T>(sum, 1000), unscaled = input<T>(premul, 1000);
        for (std::size_t i = 0; i < expected.size(); ++i) {
          ASSERT_EQ(number(unscaled[i]) * factor_of(ranks - 1), number(expected[i])) << to_string(dtype) << " " << i;
        }
      }
    });
  }
}

/// So that a result that is not computed at all cannot be right.
TEST(Inputs, OfSumsHaveManySums) {
  const auto sums_of = []<class T>(std::type_identity<T>, Dtype dtype, int ranks) {
    std::vector<double> total(1000);
    for (int rank = 0; rank < ranks; ++rank) {
      const auto values = input<T>({.dtype = dtype, .op = Op::sum, .ranks = ranks, .rank = rank}, 1000);
      for (std::size_t i = 0; i < total.size(); ++i) total[i] += number(values[i]);
    }
    return std::set<double>(total.begin(), total.end()).size();
  };
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 32, 500}) {
    EXPECT_GT(sums_of(std::type_identity<Float8E5M2>{}, Dtype::f8e5m2, ranks), 7U) << ranks;
    EXPECT_GT(sums_of(std::type_identity<Float8E4M3>{}, Dtype::f8e4m3, ranks), 7U) << ranks;
    EXPECT_GT(sums_of(std::type_identity<BFloat16>{}, Dtype::bf16, ranks), 10U) << ranks;
    EXPECT_GT(sums_of(std::type_identity<Half>{}, Dtype::f16, ranks), 200U) << ranks;
    EXPECT_GT(sums_of(std::type_identity<double>{}, Dtype::f64, ranks), 900U) << ranks;
  }
}

TEST(Inputs, OfDoubleNeedDouble) {
  const auto values = input<double>({.dtype = Dtype::f64, .op = Op::sum, .ranks = 4, .rank = 1}, 1000);
  EXPECT_GT(std::count_if(values.begin(), values.end(),
                          [](double value) { return static_cast<double>(static_cast<float>(value)) != value; }),
            900);
}

TEST(Inputs, OfIntegerProductsAreOddAndNotOne) {
  for (const int rank : {0, 3}) {
    for (const std::int8_t value :
         input<std::int8_t>({.dtype = Dtype::i8, .op = Op::prod, .ranks = 4, .rank = rank}, 1000)) {
      ASSERT_NE(value % 2, 0);
      ASSERT_NE(value, 1);
    }
  }
}

TEST(Inputs, OfBitsShowEveryRankSomewhere) {
  for (const Op op : {Op::band, Op::bor, Op::bxor}) {
    for (const int ranks : {2, 3, 8, 17, 300}) {
      std::vector<std::vector<std::uint8_t>> inputs;
      for (int rank = 0; rank < ranks; ++rank) {
        inputs.push_back(input<std::uint8_t>({.dtype = Dtype::u8, .op = op, .ranks = ranks, .rank = rank}, 4000));
      }
      for (const int missing : {0, ranks / 2, ranks - 1}) {
        int shown = 0;
        for (std::size_t i = 0; i < 4000; ++i) {
          unsigned with = op == Op::band ? 0xffU : 0U, without = with;
          for (int rank = 0; rank < ranks; ++rank) {
            const unsigned value = inputs[static_cast<std::size_t>(rank)][i];
            const auto add = [&](unsigned total) {
              return op == Op::band ? total & value : op == Op::bor ? total | value : total ^ value;
            };
            with = add(with);
            if (rank != missing) without = add(without);
          }
          shown += with != without ? 1 : 0;
        }
        EXPECT_GT(shown, 4000 / (2 * ranks)) << to_string(op) << ", rank " << missing << " of " << ranks;
      }
    }
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

template <class T>
void expect_distinct(Dtype dtype, Op op, int ranks) {
  std::vector<std::set<double>> values(100);
  for (int rank = 0; rank < ranks; ++rank) {
    const auto one = input<T>({.dtype = dtype, .op = op, .ranks = ranks, .rank = rank}, values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_TRUE(std::isfinite(number(one[i])));
      values[i].insert(number(one[i]));
    }
  }
  for (const auto& element : values) EXPECT_EQ(element.size(), static_cast<std::size_t>(ranks));
}

TEST(Inputs, OfMinAndMaxAreDistinctAmongAsManyRanksAsTheBitsAllow) {
  for (const Op op : {Op::min, Op::max}) {
    for (const Dtype dtype : all_dtypes()) {
      SCOPED_TRACE(to_string(dtype));
      const int ranks = size_of(dtype) > 1 ? 300 : is_integer(dtype) ? 256 : 64;
      visit_dtype(dtype, [&]<class T>(std::type_identity<T>) { expect_distinct<T>(dtype, op, ranks); });
    }
  }
}

TEST(Inputs, OfIntegersUseTheFullRange) {
  const auto values = input<std::int32_t>({.dtype = Dtype::i32, .op = Op::sum, .ranks = 2, .rank = 0}, 10000);
  EXPECT_LT(*std::min_element(values.begin(), values.end()), -2'140'000'000);
  EXPECT_GT(*std::max_element(values.begin(), values.end()), 2'140'000'000);
}

TEST(Inputs, OfBoolAreZeroAndOneAndSingleRanksDecide) {
  constexpr int kRanks = 5;
  constexpr std::size_t kCount = 4000;
  for (const Op op : {Op::sum, Op::min, Op::max, Op::band, Op::bor}) {
    const bool is_every = op == Op::min || op == Op::band;
    std::vector<int> deciding(kCount);
    for (int rank = 0; rank < kRanks; ++rank) {
      const auto values = input<Boolean>({.dtype = Dtype::boolean, .op = op, .ranks = kRanks, .rank = rank}, kCount);
      for (std::size_t i = 0; i < kCount; ++i) {
        ASSERT_LE(values[i], 1);
        deciding[i] += (values[i] == 0) == is_every ? 1 : 0;
      }
    }
    EXPECT_GT(std::ranges::count(deciding, 1), kCount / 5) << to_string(op);
  }
}

TEST(Inputs, ExistForEveryPairOnAnyNumberOfRanks) {
  for (const Dtype dtype : known_dtypes()) {
    for (const Op op : all_ops()) {
      for (const int ranks : {1, 17, 4096}) {
        const Status status = supports_inputs(dtype, op, ranks);
        EXPECT_EQ(status.is_ok(), op_exists(op, dtype)) << to_string(dtype) << " " << to_string(op);
      }
    }
  }
  EXPECT_EQ(supports_inputs(Dtype::f32, Op::band, 2).message(), "float has no band");
  EXPECT_EQ(supports_inputs(Dtype::f32, Op::sum, 0).code(), Code::invalid_argument);
}

}  // namespace
}  // namespace tutti::harness::verify
