// SPDX-License-Identifier: Apache-2.0
// Special values have one result, whichever rank adds first; and what is to be there is there.
#include "harness/verify/special_values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "harness/verify/buffers.h"
#include "harness/verify/check.h"
#include "harness/verify/oracle.h"
#include "suites/unit/harness/verify/typed_inputs.h"

namespace tutti::harness::verify::special_values {
namespace {

constexpr std::size_t kElements = 400;

template <class T>
using CodeOf = typename Format<T>::Code;
template <class T>
CodeOf<T> code(T value) {
  return std::bit_cast<CodeOf<T>>(value);
}
template <class T>
bool is_nan(T value) {
  return std::isnan(Accumulation<T>::load(value));
}

Operation all_reduce(Dtype dtype, Op op, int ranks) {
  return all_reduce_of(dtype, op, ranks, kElements, Values::special);
}

template <class T>
std::vector<T> expected(const Operation& operation) {
  std::vector<T> values(kElements);
  fill_expected(std::as_writable_bytes(std::span(values)), operation, {});
  return values;
}

/// One element as ranks add in turn: a rounding at each hop, and of avg the division in the last one.
template <class T>
T in_turn(const std::vector<T>& column, Op op) {
  using A = Accumulation<T>;
  T total = column.front();
  for (std::size_t i = 1; i < column.size(); ++i) {
    const auto sum = combine<T>(A::load(total), column[i], op);
    const bool is_final = op == Op::avg && i + 1 == column.size();
    total = is_final ? A::divided(sum, static_cast<int>(column.size())) : A::store(sum);
  }
  return total;
}
/// As one MOVE adds all: rounded once.
template <class T>
T at_once(const std::vector<T>& column, Op op) {
  auto total = Accumulation<T>::load(column.front());
  for (std::size_t i = 1; i < column.size(); ++i) total = combine<T>(total, column[i], op);
  return finish<T>(total, op, static_cast<int>(column.size()));
}
/// Two halves that are each added in turn.
template <class T>
T in_halves(const std::vector<T>& column, Op op) {
  const auto middle = column.begin() + static_cast<std::ptrdiff_t>(column.size() / 2);
  if (op == Op::avg || column.size() < 2) return in_turn(column, op);
  return in_turn<T>({in_turn<T>({column.begin(), middle}, op), in_turn<T>({middle, column.end()}, op)}, op);
}

template <class T>
void expect_one_result(Dtype dtype, Op op, int ranks) {
  const Operation operation = all_reduce(dtype, op, ranks);
  std::vector<std::vector<T>> inputs;
  for (int rank = 0; rank < ranks; ++rank) {
    inputs.push_back(input<T>(operation, rank));
    if (op != Op::premul_sum) continue;
    for (T& value : inputs.back()) value = scaled(value, factor_of(rank));
  }
  const std::vector<T> right = expected<T>(operation);
  std::mt19937 random(1);
  for (int trial = 0; trial < 4; ++trial) {
    for (std::size_t i = 0; i < kElements; ++i) {
      std::vector<T> column;
      for (const auto& values : inputs) column.push_back(values[i]);
      for (const T value : {in_turn(column, op), at_once(column, op), in_halves(column, op)}) {
        if (is_nan(right[i]) && is_nan(value)) continue;
        ASSERT_EQ(code(value), code(right[i]))
            << to_string(dtype) << " " << to_string(op) << " of " << ranks << " ranks, element " << i;
      }
    }
    std::shuffle(inputs.begin(), inputs.end(), random);
  }
}

TEST(SpecialValues, HaveOneResultInEveryOrderAndGrouping) {
  for (const Dtype dtype : all_dtypes()) {
    if (is_integer(dtype)) continue;
    for (const Op op : {Op::sum, Op::avg, Op::premul_sum, Op::prod, Op::min, Op::max}) {
      for (const int ranks : {2, 3, 5, 16, 17, 40}) {
        visit_dtype(dtype, [&]<class T>(std::type_identity<T>) {
          if constexpr (!std::is_integral_v<T>) {
            ASSERT_NO_FATAL_FAILURE(expect_one_result<T>(dtype, op, ranks));
          }
        });
      }
    }
  }
}

// Of the first ranks alone too: what a scan gives.
TEST(SpecialValues, HaveOneResultOnEveryRankOfAScan) {
  const auto of = []<class T>(std::type_identity<T>, Dtype dtype, Op op, int ranks) {
    Operation scan = all_reduce(dtype, op, ranks);
    scan.problem.collective = Collective::scan;
    std::vector<std::vector<T>> columns(kElements);
    for (int rank = 0; rank < ranks; ++rank) {
      const std::vector<T> values = input<T>(scan, rank);
      for (std::size_t i = 0; i < kElements; ++i) {
        columns[i].push_back(op == Op::premul_sum ? scaled(values[i], factor_of(rank)) : values[i]);
        if (rank == 0) continue;  // has a copy
        const T right = at_once(columns[i], op);
        for (const T value : {in_turn(columns[i], op), in_halves(columns[i], op)}) {
          if (is_nan(right) && is_nan(value)) continue;
          ASSERT_EQ(code(value), code(right)) << to_string(dtype) << " " << to_string(op) << " up to rank " << rank
                                              << " of " << ranks << ", element " << i;
        }
      }
    }
  };
  for (const Dtype dtype : all_dtypes()) {
    for (const Op op : {Op::sum, Op::premul_sum, Op::prod, Op::min, Op::max}) {
      for (const int ranks : {2, 17, 40}) {
        visit_dtype(dtype, [&]<class T>(std::type_identity<T> type) {
          if constexpr (!std::is_integral_v<T>) {
            ASSERT_NO_FATAL_FAILURE(of(type, dtype, op, ranks));
          }
        });
      }
    }
  }
}

template <class T>
std::set<CodeOf<T>> results(Dtype dtype, Op op) {
  std::set<CodeOf<T>> seen;
  for (const T value : expected<T>(all_reduce(dtype, op, 3))) seen.insert(code(value));
  return seen;
}

// A NaN, zeros of both signs, infinity from it or from overflow, the largest value, subnormals.
TEST(SpecialValues, GiveEveryKindOfResultInSomeHundredElements) {
  for (const Op op : {Op::sum, Op::premul_sum, Op::prod}) {
    const auto half = results<Half>(Dtype::f16, op);
    for (const int one : {0x7c00, 0xfc00, 0x7bff, 0x8000}) {
      EXPECT_TRUE(half.contains(static_cast<std::uint16_t>(one)) || (op == Op::prod && one == 0x7bff))
          << to_string(op) << " " << std::hex << one;
    }
    EXPECT_TRUE(std::ranges::any_of(half, [](std::uint16_t bits) { return (bits & 0x7fffU) > 0x7c00U; })) << "a NaN";
    EXPECT_TRUE(std::ranges::any_of(half, [](std::uint16_t bits) {
      return (bits & 0x7fffU) > 0 && (bits & 0x7fffU) < 0x0400U;
    })) << "a subnormal";
    const auto e5m2 = results<Float8E5M2>(Dtype::f8e5m2, op);
    EXPECT_TRUE(e5m2.contains(0x7b) && e5m2.contains(0x7f) && e5m2.contains(0x80)) << to_string(op);
    EXPECT_FALSE(e5m2.contains(0x7c) || e5m2.contains(0xfc)) << "no reduction makes the infinity of f8e5m2";
    const auto e4m3 = results<Float8E4M3>(Dtype::f8e4m3, op);
    EXPECT_TRUE(e4m3.contains(0x7e) && e4m3.contains(0x7f) && e4m3.contains(0x80)) << to_string(op);
  }
  EXPECT_TRUE(results<float>(Dtype::f32, Op::max).contains(0x7f800000U));
  EXPECT_TRUE(results<double>(Dtype::f64, Op::min).contains(0xfff0000000000000U));
}

// 65504 + 16 is infinity and 65504 + 15.99 is not: both are among the sums.
TEST(SpecialValues, LieOnBothSidesOfTheEdgeOfOverflow) {
  const Operation operation = all_reduce(Dtype::f16, Op::sum, 2);
  const auto one = input<Half>(operation, 0), other = input<Half>(operation, 1);
  const auto right = expected<Half>(operation);
  std::set<int> seen;
  for (std::size_t i = 0; i < kElements; ++i) {
    const std::uint16_t low = std::min(one[i].bits, other[i].bits), high = std::max(one[i].bits, other[i].bits);
    if (high != 0x7bff || low == 0) continue;
    if (low == 0x4c00 || low == 0x4bff) {
      EXPECT_EQ(right[i].bits, low == 0x4c00 ? 0x7c00 : 0x7bff);
    }
    seen.insert(low);
  }
  EXPECT_TRUE(seen.contains(0x4c00) && seen.contains(0x4bff));
}

TEST(SpecialValues, ThatAreMovedAreAnyBits) {
  Operation operation = all_reduce(Dtype::f32, Op::none, 4);
  operation.problem.collective = Collective::broadcast;
  int signalling = 0, subnormal = 0, infinite = 0;
  for (const float value : input<float>(operation, 0)) {
    const std::uint32_t magnitude = code(value) & 0x7fffffffU;
    signalling += magnitude > 0x7f800000U && magnitude < 0x7fc00000U ? 1 : 0;
    subnormal += magnitude > 0 && magnitude < 0x00800000U ? 1 : 0;
    infinite += magnitude == 0x7f800000U ? 1 : 0;
  }
  EXPECT_GT(std::min({signalling, subnormal, infinite}), 5);
}

CheckResult verified(const Operation& operation, std::span<const std::byte> bytes) {
  Oracle oracle(operation);
  return verify_output(oracle, {.rank = 1, .bytes = bytes});
}

TEST(SpecialValues, AnyNanIsRightOfASumAndOnlyTheSameBitsOfWhatIsMoved) {
  Operation sum = all_reduce(Dtype::f32, Op::sum, 3);
  std::vector<float> values = expected<float>(sum);
  const auto nan = std::ranges::find_if(values, [](float value) { return std::isnan(value); });
  ASSERT_NE(nan, values.end());
  *nan = std::bit_cast<float>(0x7fa00001U);
  EXPECT_TRUE(verified(sum, std::as_bytes(std::span(values))).is_ok());
  *nan = 1;
  EXPECT_EQ(verified(sum, std::as_bytes(std::span(values))).wrong, 1) << "a number for a NaN";
  *nan = std::bit_cast<float>(std::uint32_t{poison_word(sum.salt)} * 0x10001U);
  EXPECT_EQ(verified(sum, std::as_bytes(std::span(values))).wrong, 1) << "the poison is a NaN that nobody wrote";

  for (Operation moved : {all_reduce(Dtype::f32, Op::none, 3), all_reduce(Dtype::f32, Op::sum, 1)}) {
    if (moved.op == Op::none) moved.problem.collective = Collective::broadcast;
    values = expected<float>(moved);
    EXPECT_TRUE(verified(moved, std::as_bytes(std::span(values))).is_ok() || moved.problem.ranks == 1);
    for (float& value : values) {
      if (std::isnan(value)) value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ 0x80000000U);
    }
    moved.problem.root = 0;
    Oracle oracle(moved);
    EXPECT_FALSE(verify_output(oracle, {.rank = 0, .bytes = std::as_bytes(std::span(values))}).is_ok());
  }
}

}  // namespace
}  // namespace tutti::harness::verify::special_values
