// SPDX-License-Identifier: Apache-2.0
// Random values: the reference is exact, any order of additions is within the bound, and what is reduced in too narrow
// a type, or without a rank, is not.
#include "harness/verify/rounding.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/verify/accumulation.h"
#include "suites/unit/harness/verify/typed_inputs.h"

namespace tutti::harness::verify::rounding {
namespace {

using testing::HasSubstr;

constexpr std::size_t kElements = 2000;

Operation all_reduce(Dtype dtype, Op op, int ranks) {
  return all_reduce_of(dtype, op, ranks, kElements, Values::random);
}

template <class T>
CheckResult verified(const Operation& operation, const std::vector<T>& values, Accuracy* accuracy = nullptr) {
  return verify_rounded(operation, {.rank = 0, .bytes = std::as_bytes(std::span(values))}, accuracy);
}

TEST(RoundingReference, OfAScanIsBoundByTheRanksThatContribute) {
  Operation scan = all_reduce(Dtype::f32, Op::sum, 40);
  scan.problem.collective = Collective::scan;
  const Operation all = all_reduce(Dtype::f32, Op::sum, 40);
  std::vector<Reference> up_to_two(100), of_all(100), of_last(100);
  fill_reference(up_to_two, scan, {.rank = 2});
  fill_reference(of_last, scan, {.rank = 39});
  fill_reference(of_all, all, {.rank = 2});
  const auto a = input<float>(scan, 0), b = input<float>(scan, 1), c = input<float>(scan, 2);
  for (std::size_t i = 0; i < up_to_two.size(); ++i) {
    const double sum = static_cast<double>(a[i]) + static_cast<double>(b[i]) + static_cast<double>(c[i]);
    const double magnitudes = std::abs(a[i]) + std::abs(b[i]) + std::abs(c[i]);
    EXPECT_EQ(up_to_two[i].high + up_to_two[i].low, sum) << i;
    EXPECT_LT(up_to_two[i].bound, 2.01 * std::ldexp(magnitudes, -24)) << "two additions";
    EXPECT_EQ(of_last[i].high, of_all[i].high) << i;
    EXPECT_EQ(of_last[i].bound, of_all[i].bound) << i;
  }
}

/// Every element reduced by the ranks in turn, in the order given, each hop rounded to Hop and then to T.
template <class T, class Hop = T>
std::vector<T> in_turn(const Operation& operation, const std::vector<int>& order) {
  using A = Accumulation<T>;
  std::vector<T> total;
  for (std::size_t hop = 0; hop < order.size(); ++hop) {
    std::vector<T> values = input<T>(operation, order[hop]);
    if (operation.op == Op::premul_sum) {
      for (T& value : values) value = scaled(value, factor_of(order[hop]));
    }
    if (hop == 0) {
      total = values;
      continue;
    }
    const bool is_final = operation.op == Op::avg && hop + 1 == order.size();
    for (std::size_t i = 0; i < kElements; ++i) {
      const auto sum = combine<T>(A::load(total[i]), values[i], operation.op);
      T stored = is_final ? A::divided(sum, operation.problem.ranks) : A::store(sum);
      if constexpr (!std::is_same_v<T, Hop>) {
        const auto narrow = Accumulation<Hop>::store(static_cast<typename Accumulation<Hop>::Type>(A::load(stored)));
        stored = A::store(static_cast<typename A::Type>(Accumulation<Hop>::load(narrow)));
      }
      total[i] = stored;
    }
  }
  return total;
}

std::vector<int> ranks_of(const Operation& operation) {
  std::vector<int> order(static_cast<std::size_t>(operation.problem.ranks));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  return order;
}

TEST(Rounding, AnyOrderOfEveryDtypeIsWithinTheBound) {
  std::mt19937 random(1);
  for (const Dtype dtype : all_dtypes()) {
    if (is_integer(dtype)) continue;
    for (const Op op : {Op::sum, Op::avg, Op::premul_sum, Op::prod}) {
      for (const int ranks : {1, 2, 3, 7, 16}) {
        const Operation operation = all_reduce(dtype, op, ranks);
        std::vector<int> order = ranks_of(operation);
        std::ranges::shuffle(order, random);
        visit_dtype(dtype, [&]<class T>(std::type_identity<T>) {
          if constexpr (!std::is_integral_v<T>) {
            const CheckResult result = verified(operation, in_turn<T>(operation, order));
            EXPECT_TRUE(result.is_ok()) << to_string(dtype) << " " << to_string(op) << " of " << ranks << ": "
                                        << result.text();
            EXPECT_EQ(result.checked, static_cast<Count>(kElements));
          }
        });
      }
    }
  }
}

TEST(Rounding, TheReferenceIsTheExactSum) {
  const Operation operation = all_reduce(Dtype::f64, Op::sum, 3);
  const auto a = input<double>(operation, 0), b = input<double>(operation, 1), c = input<double>(operation, 2);
  std::vector<Reference> references(kElements);
  fill_reference(references, operation, {});
  for (std::size_t i = 0; i < kElements; ++i) {
    const __float128 exact = static_cast<__float128>(a[i]) + b[i] + c[i];
    const auto high = static_cast<double>(exact);
    ASSERT_EQ(references[i].high + references[i].low, high) << i;
    ASSERT_LE(std::abs(static_cast<double>(exact - references[i].high - references[i].low)), 1e-31) << i;
  }
  // Of three values: two additions, so 2u and a little of the magnitudes.
  const double magnitudes = std::abs(a[0]) + std::abs(b[0]) + std::abs(c[0]);
  EXPECT_NEAR(references[0].bound, 2 * 0x1p-53 * magnitudes, 1e-28);
}

TEST(Rounding, InputsHaveBothSignsAndCancel) {
  const Operation operation = all_reduce(Dtype::f32, Op::sum, 2);
  const auto a = input<float>(operation, 0), b = input<float>(operation, 1);
  int cancels = 0;
  for (std::size_t i = 0; i < kElements; ++i) {
    ASSERT_GE(std::abs(a[i]), 0.0625F);
    ASSERT_LT(std::abs(a[i]), 1.0F);
    cancels += std::abs(a[i] + b[i]) < 0.1F * (std::abs(a[i]) + std::abs(b[i])) ? 1 : 0;
  }
  EXPECT_GT(cancels, 50);
}

TEST(Rounding, OneUlpTooFarIsFound) {
  const Operation operation = all_reduce(Dtype::f64, Op::sum, 2);
  std::vector<double> right = in_turn<double>(operation, {0, 1});
  ASSERT_TRUE(verified(operation, right).is_ok());
  right[77] += std::copysign(4e-16, right[77]);
  const CheckResult result = verified(operation, right);
  EXPECT_EQ(result.wrong, 1);
  EXPECT_EQ(result.first_bad, 77);
  EXPECT_THAT(result.expected, HasSubstr(" within "));
  right[77] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(verified(operation, right).wrong, 1) << "a NaN is within nothing";
}

template <class T, class Hop>
void expect_too_narrow(Dtype dtype, int ranks) {
  const Operation operation = all_reduce(dtype, Op::sum, ranks);
  const CheckResult result = verified(operation, in_turn<T, Hop>(operation, ranks_of(operation)));
  EXPECT_GT(result.wrong, static_cast<Count>(kElements / 2)) << to_string(dtype) << " on " << ranks;
  EXPECT_THAT(result.diagnosis, HasSubstr("too narrow a type")) << to_string(dtype);
  EXPECT_TRUE(result.tells_cause);
}

TEST(Rounding, AReductionInTooNarrowATypeIsCaughtAndNamed) {
  for (const int ranks : {2, 4, 16}) {
    expect_too_narrow<double, float>(Dtype::f64, ranks);
    expect_too_narrow<float, Half>(Dtype::f32, ranks);
    expect_too_narrow<float, BFloat16>(Dtype::f32, ranks);
    if (ranks <= 4) expect_too_narrow<Half, Float8E4M3>(Dtype::f16, ranks);
  }
}

TEST(Rounding, AMissingRankIsNamed) {
  const Operation operation = all_reduce(Dtype::f32, Op::sum, 5);
  const CheckResult result = verified(operation, in_turn<float>(operation, {0, 1, 3, 4}));
  EXPECT_EQ(result.wrong, static_cast<Count>(kElements));
  EXPECT_THAT(result.diagnosis, HasSubstr("rank 2's contribution is missing"));
}

TEST(Rounding, ErrorsAreInUnitsOfTheLastPlace) {
  const Operation operation = all_reduce(Dtype::f32, Op::sum, 2);
  std::vector<Reference> references(kElements);
  fill_reference(references, operation, {});
  std::vector<float> nearest(kElements);
  for (std::size_t i = 0; i < kElements; ++i) nearest[i] = static_cast<float>(references[i].high);
  Accuracy accuracy;
  EXPECT_TRUE(verified(operation, nearest, &accuracy).is_ok());
  EXPECT_EQ(accuracy.elements, static_cast<Count>(kElements));
  EXPECT_LE(accuracy.max_ulp, 0.5);
  EXPECT_GT(accuracy.max_ulp, 0.4) << "correctly rounded, some of 2000 lie near the middle";
  EXPECT_NEAR(accuracy.mean_ulp(), 0.25, 0.15);
  nearest[5] = std::nextafter(nearest[5], 2.0F);
  Accuracy worse;
  static_cast<void>(verified(operation, nearest, &worse));
  EXPECT_GT(worse.max_ulp, 0.5);
  EXPECT_LE(worse.max_ulp, 1.5);
}

TEST(Rounding, OfALongBlockAsManyElementsAreJudgedAsAskedForFromAllOfIt) {
  Operation operation = all_reduce(Dtype::f32, Op::sum, 1);
  operation.count = 100'000;
  std::vector<float> values(static_cast<std::size_t>(operation.count));
  fill_input(std::as_writable_bytes(std::span(values)), input_of(operation, 0));
  for (float& value : std::span(values).last(40'000)) value = 2;
  Accuracy accuracy;
  const CheckResult result =
      verify_rounded(operation, {.rank = 0, .bytes = std::as_bytes(std::span(values))}, &accuracy, 8192);
  EXPECT_NEAR(static_cast<double>(accuracy.elements), 8192, 1024);
  EXPECT_NEAR(static_cast<double>(result.wrong), 0.4 * 8192, 1024);
}

}  // namespace
}  // namespace tutti::harness::verify::rounding
