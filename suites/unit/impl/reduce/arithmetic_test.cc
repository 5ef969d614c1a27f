// SPDX-License-Identifier: Apache-2.0
// The corners of the arithmetic with literals, on every instruction set that this CPU runs, for one element (the narrow
// end of the cascade) and for many. impl/collective/README.md names these tests beside its rules.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "impl/reduce/kernels_isa.h"

namespace tutti {
namespace {

constexpr std::size_t kCounts[] = {1, 2, 3, 7, 40, 200};

template <class T>
constexpr Dtype dtype_of() {
#define TUTTI_ROW(id, type, name) \
  if constexpr (std::is_same_v<T, type>) return Dtype::id;
  TUTTI_DTYPES(TUTTI_ROW)
#undef TUTTI_ROW
}

/// The bits of T, to compare a NaN or a -0 as well.
template <class T>
std::uint64_t bits_of(T value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

/// The result of a final reduction of `values`, each in every element, which must be the same for every instruction
/// set, count and element.
template <class T>
T reduced(Op op, const std::vector<T>& values) {
  T first{};
  bool is_first = true;
  for (const std::size_t count : kCounts) {
    std::vector<std::vector<T>> inputs;
    std::vector<const std::byte*> from;
    for (const T value : values) inputs.emplace_back(count, value);
    for (const auto& input : inputs) from.push_back(reinterpret_cast<const std::byte*>(input.data()));
    for (const KernelTable* table : runnable_kernels()) {
      std::vector<T> output(count);
      auto* const to = reinterpret_cast<std::byte*>(output.data());
      kernel_for_isa(*table, dtype_of<T>(), op)({.destinations = &to,
                                                 .destination_count = 1,
                                                 .sources = from.data(),
                                                 .source_count = static_cast<int>(from.size()),
                                                 .bytes = count * sizeof(T),
                                                 .ranks = static_cast<int>(from.size()),
                                                 .is_final = true});
      if (is_first) first = output[0];
      is_first = false;
      for (const T element : output) EXPECT_EQ(bits_of(element), bits_of(first)) << table->isa << ", count " << count;
    }
  }
  return first;
}

template <class T>
void expect(Op op, const std::vector<T>& values, T expected) {
  EXPECT_EQ(bits_of(reduced(op, values)), bits_of(expected)) << to_string(dtype_of<T>()) << " " << to_string(op);
}

/// The same for a float of 8 or 16 bits, by its codes.
template <class T>
void expect_codes(Op op, std::initializer_list<int> codes, int expected) {
  std::vector<T> values;
  for (const int code : codes) values.push_back({static_cast<decltype(T::bits)>(code)});
  EXPECT_EQ(static_cast<int>(reduced(op, values).bits), expected) << to_string(dtype_of<T>()) << " " << to_string(op);
}

template <class T>
class Integers : public testing::Test {};
using IntegerTypes =
    testing::Types<std::int8_t, std::uint8_t, std::int32_t, std::uint32_t, std::int64_t, std::uint64_t>;
TYPED_TEST_SUITE(Integers, IntegerTypes);

TYPED_TEST(Integers, WrapInSumsAndProducts) {
  using T = TypeParam;
  constexpr T kMost = std::numeric_limits<T>::max();
  constexpr T kLeast = std::numeric_limits<T>::min();
  expect<T>(Op::sum, {kMost, 1}, kLeast);
  expect<T>(Op::sum, {kMost, kMost}, static_cast<T>(-2));
  expect<T>(Op::prod, {kMost, 2}, static_cast<T>(-2));
  expect<T>(Op::prod, {kMost, kMost}, 1);  // 2^(n-1)-1 or 2^n-1, squared
  expect<T>(Op::prod, {3, 5, 7}, 105);
}

TYPED_TEST(Integers, HaveTheMinAndMaxOfTheirType) {
  using T = TypeParam;
  constexpr T kMost = std::numeric_limits<T>::max();
  constexpr T kLeast = std::numeric_limits<T>::min();
  expect<T>(Op::min, {5, kMost, 3, kLeast, 4}, kLeast);
  expect<T>(Op::max, {5, kMost, 3, kLeast, 4}, kMost);
  expect<T>(Op::min, {static_cast<T>(-1), 1}, std::is_signed_v<T> ? static_cast<T>(-1) : T{1});
  expect<T>(Op::max, {static_cast<T>(-1), 1}, std::is_signed_v<T> ? T{1} : kMost);
}

TYPED_TEST(Integers, CombineBits) {
  using T = TypeParam;
  expect<T>(Op::band, {0x6c, 0x5f, 0x7e}, 0x4c);
  expect<T>(Op::bor, {0x24, 0x11, 0x40}, 0x75);
  expect<T>(Op::bxor, {0x6c, 0x5f, 0x7e}, 0x4d);
  expect<T>(Op::bor, {std::numeric_limits<T>::min(), std::numeric_limits<T>::max()}, static_cast<T>(~T{0}));
  expect<T>(Op::bxor, {static_cast<T>(-1), static_cast<T>(-1)}, 0);
}

TYPED_TEST(Integers, AverageIsTheWrappedSumTruncatedTowardsZero) {
  using T = TypeParam;
  constexpr T kMost = std::numeric_limits<T>::max();
  constexpr T kLeast = std::numeric_limits<T>::min();
  expect<T>(Op::avg, {3, 4}, 3);
  expect<T>(Op::avg, {7, 1, 0}, 2);
  expect<T>(Op::avg, {kMost, 0, 0}, kMost / 3);
  expect<T>(Op::avg, {kMost}, kMost);
  expect<T>(Op::avg, {kLeast, 0, 0}, kLeast / 3);
  expect<T>(Op::avg, {kLeast}, kLeast);
  expect<T>(Op::avg, {kMost, kMost}, std::is_signed_v<T> ? static_cast<T>(-1) : static_cast<T>(kMost / 2));
  if (std::is_signed_v<T>) expect<T>(Op::avg, {static_cast<T>(-3), static_cast<T>(-4)}, static_cast<T>(-3));
}

TEST(Integers, AverageOfEveryInt8IsExactForManyRanks) {
  for (const int ranks : {2, 3, 5, 7, 11, 127, 128, 129, 1000}) {
    for (int value = -128; value < 128; ++value) {
      std::vector<std::int8_t> values(static_cast<std::size_t>(ranks), 0);
      values.back() = static_cast<std::int8_t>(value);
      ASSERT_EQ(reduced(Op::avg, values), value / ranks) << value << " / " << ranks;
    }
  }
}

template <class T>
class WideFloats : public testing::Test {};
using WideTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(WideFloats, WideTypes);

TYPED_TEST(WideFloats, NanPropagatesThroughMinAndMaxFromAnySource) {
  using T = TypeParam;
  for (const std::size_t culprit : {0U, 1U, 2U, 4U}) {
    std::vector<T> values{1, -2, 3, std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::infinity()};
    values[culprit] = std::numeric_limits<T>::quiet_NaN();
    EXPECT_TRUE(std::isnan(reduced(Op::max, values))) << culprit;
    EXPECT_TRUE(std::isnan(reduced(Op::min, values))) << culprit;
  }
}

TYPED_TEST(WideFloats, NegativeZeroLiesBelowPositiveZero) {
  using T = TypeParam;
  expect<T>(Op::max, {T{0}, -T{0}}, T{0});
  expect<T>(Op::max, {-T{0}, T{0}, -T{0}}, T{0});
  expect<T>(Op::max, {-T{0}, -T{0}}, -T{0});
  expect<T>(Op::min, {T{0}, -T{0}}, -T{0});
  expect<T>(Op::min, {-T{0}, T{0}, T{0}}, -T{0});
  expect<T>(Op::min, {T{0}, T{0}}, T{0});
}

TYPED_TEST(WideFloats, KeepSubnormals) {
  using T = TypeParam;
  constexpr T kLeast = std::numeric_limits<T>::denorm_min();
  expect<T>(Op::sum, {kLeast, kLeast}, 2 * kLeast);
  expect<T>(Op::prod, {std::numeric_limits<T>::min(), T{0.5}}, std::numeric_limits<T>::min() / 2);
  expect<T>(Op::min, {kLeast, T{1}}, kLeast);
}

TEST(WideFloats, AverageIsTheSumDividedByTheRanks) {
  // 10 / 3 is 0x1.aaaaaap+1; 10 times the nearest float to 1/3 is 0x1.aaaaacp+1.
  expect<float>(Op::avg, {5, 4, 1}, 0x1.aaaaaap+1F);
  expect<double>(Op::avg, {5, 4, 1}, 10.0 / 3.0);
  expect<double>(Op::sum, {0x1p53, 1, 1}, 0x1p53);  // in double, left to right: each 1 is lost to a tie
}

TEST(NarrowFloats, PropagateNanThroughEveryOp) {
  for (const Op op : {Op::sum, Op::prod, Op::min, Op::max, Op::avg}) {
    for (const bool is_first : {false, true}) {
      for (unsigned code = 0x7c01; code <= 0x7fff; ++code) {
        std::vector<Half> values{Half{0x3c00}, Half{static_cast<std::uint16_t>(code)}};
        if (is_first) std::swap(values[0], values[1]);
        ASSERT_GT(reduced(op, values).bits & 0x7fffU, 0x7c00U) << code << " " << to_string(op);
      }
      for (unsigned code = 0x7f81; code <= 0x7fff; code += 3) {
        std::vector<BFloat16> values{BFloat16{0x3f80}, BFloat16{static_cast<std::uint16_t>(code)}};
        if (is_first) std::swap(values[0], values[1]);
        ASSERT_GT(reduced(op, values).bits & 0x7fffU, 0x7f80U) << code << " " << to_string(op);
      }
      for (const int sign : {0, 0x80}) {
        is_first ? expect_codes<Float8E4M3>(op, {0x7f | sign, 0x38}, 0x7f)
                 : expect_codes<Float8E4M3>(op, {0x38, 0x7f | sign}, 0x7f);
        for (const int code : {0x7d, 0x7e, 0x7f}) {
          is_first ? expect_codes<Float8E5M2>(op, {code | sign, 0x3c}, 0x7f)
                   : expect_codes<Float8E5M2>(op, {0x3c, code | sign}, 0x7f);
        }
      }
    }
  }
}

TEST(NarrowFloats, KeepTheSignOfZeroInMinAndMax) {
  expect_codes<Half>(Op::max, {0x8000, 0x0000}, 0x0000);
  expect_codes<Half>(Op::min, {0x0000, 0x8000}, 0x8000);
  expect_codes<BFloat16>(Op::max, {0x8000, 0x0000}, 0x0000);
  expect_codes<BFloat16>(Op::min, {0x0000, 0x8000}, 0x8000);
  expect_codes<Float8E4M3>(Op::max, {0x80, 0x00}, 0x00);
  expect_codes<Float8E4M3>(Op::min, {0x00, 0x80}, 0x80);
  expect_codes<Float8E5M2>(Op::max, {0x80, 0x00}, 0x00);
  expect_codes<Float8E5M2>(Op::min, {0x00, 0x80}, 0x80);
}

TEST(NarrowFloats, RoundOnceOnTheStore) {
  // 1 + half a unit + half a unit: rounded after the first addition it would be 1 (a tie, to even), and 1 again after
  // the second.
  expect_codes<BFloat16>(Op::sum, {0x3f80, 0x3b80, 0x3b80}, 0x3f81);
  expect_codes<Half>(Op::sum, {0x3c00, 0x1000, 0x1000}, 0x3c01);  // 1, 2^-11
  expect_codes<Float8E4M3>(Op::sum, {0x38, 0x18, 0x18}, 0x39);    // 1, 2^-4
  expect_codes<Float8E5M2>(Op::sum, {0x3c, 0x30, 0x30}, 0x3d);    // 1, 2^-3
  // 240 x 2 / 2 in f8e4m3 goes beyond 448 only in between.
  expect_codes<Float8E4M3>(Op::prod, {0x77, 0x40, 0x30}, 0x77);
}

TEST(NarrowFloats, RoundTiesToEven) {
  expect_codes<BFloat16>(Op::sum, {0x3f80, 0x3b80}, 0x3f80);
  expect_codes<BFloat16>(Op::sum, {0x3f81, 0x3b80}, 0x3f82);
  expect_codes<Half>(Op::sum, {0x3c00, 0x1000}, 0x3c00);
  expect_codes<Half>(Op::sum, {0x3c01, 0x1000}, 0x3c02);
  expect_codes<Float8E4M3>(Op::sum, {0x38, 0x18}, 0x38);
  expect_codes<Float8E4M3>(Op::sum, {0x39, 0x18}, 0x3a);
  expect_codes<Float8E5M2>(Op::sum, {0x3c, 0x30}, 0x3c);
  expect_codes<Float8E5M2>(Op::sum, {0x3d, 0x30}, 0x3e);
}

TEST(NarrowFloats, KeepSubnormals) {
  expect_codes<Half>(Op::sum, {0x0001, 0x0001}, 0x0002);
  expect_codes<Half>(Op::prod, {0x0400, 0x3800}, 0x0200);  // 2^-14 / 2
  expect_codes<Half>(Op::sum, {0x03ff, 0x0001}, 0x0400);   // into the normal numbers
  expect_codes<BFloat16>(Op::sum, {0x0001, 0x0001}, 0x0002);
  expect_codes<Float8E4M3>(Op::sum, {0x01, 0x02}, 0x03);
  expect_codes<Float8E4M3>(Op::sum, {0x07, 0x01}, 0x08);
  expect_codes<Float8E5M2>(Op::sum, {0x03, 0x01}, 0x04);
  expect_codes<Float8E5M2>(Op::prod, {0x01, 0x38}, 0x00);  // half the least number: a tie, to even
}

TEST(NarrowFloats, HalfAndBfloat16OverflowToInfinity) {
  expect_codes<Half>(Op::sum, {0x7bff, 0x4b80}, 0x7bff);  // 65504 + 15
  expect_codes<Half>(Op::sum, {0x7bff, 0x4c00}, 0x7c00);  // 65504 + 16 is halfway to 65536
  expect_codes<Half>(Op::prod, {0xfbff, 0x4000}, 0xfc00);
  expect_codes<Half>(Op::max, {0x7c00, 0x3c00}, 0x7c00);
  expect_codes<BFloat16>(Op::sum, {0x7f7f, 0x7f7f}, 0x7f80);
  expect_codes<Half>(Op::sum, {0x7c00, 0xfc00}, 0xfe00);  // infinity less infinity: the CPU's own NaN
}

TEST(NarrowFloats, Float8Saturates) {
  expect_codes<Float8E4M3>(Op::sum, {0x7e, 0x7e}, 0x7e);  // 448 + 448
  expect_codes<Float8E4M3>(Op::sum, {0xfe, 0xfe}, 0xfe);
  expect_codes<Float8E4M3>(Op::sum, {0x7e, 0x58}, 0x7e);        // 448 + 16
  expect_codes<Float8E4M3>(Op::sum, {0x7e, 0x7e, 0xfe}, 0x7e);  // not in between: 448 + 448 - 448
  expect_codes<Float8E5M2>(Op::sum, {0x7b, 0x7b}, 0x7b);        // 57344 + 57344
  expect_codes<Float8E5M2>(Op::prod, {0xfb, 0x7b}, 0xfb);
}

TEST(NarrowFloats, InfinityOfFloat8IsStoredAsTheLargest) {
  expect_codes<Float8E5M2>(Op::sum, {0x7c, 0x3c}, 0x7b);
  expect_codes<Float8E5M2>(Op::max, {0x7c, 0x3c}, 0x7b);
  expect_codes<Float8E5M2>(Op::min, {0xfc, 0x3c}, 0xfb);
  expect_codes<Float8E5M2>(Op::sum, {0x7c, 0xfc}, 0x7f);  // infinity less infinity is a NaN
}

TEST(NarrowFloats, AverageIsDividedBeforeItIsRounded) {
  expect_codes<BFloat16>(Op::avg, {0x4380, 0x4040, 0x4000}, 0x42ae);  // 261 / 3 = 87; 261 rounds to 260
  expect_codes<Half>(Op::avg, {0x6800, 0x3c00, 0x4000}, 0x6157);      // 2051 / 3 = 683.67, in steps of 0.5
  expect_codes<Float8E4M3>(Op::avg, {0x7e, 0x7e}, 0x7e);              // 896 / 2: the sum does not saturate
  expect_codes<Float8E5M2>(Op::avg, {0x7b, 0x7b, 0x7b}, 0x7b);
}

TEST(NarrowFloats, ACopyKeepsEveryBit) {
  // One source that is not divided is moved, not computed: NaN payloads and the infinity of f8e5m2 stay.
  for (const KernelTable* table : runnable_kernels()) {
    const std::uint8_t in[] = {0xff, 0x7c, 0xfd, 0x80};
    std::uint8_t out[4] = {};
    const auto* const from = reinterpret_cast<const std::byte*>(in);
    auto* const to = reinterpret_cast<std::byte*>(out);
    kernel_for_isa(*table, Dtype::f8e5m2, Op::sum)(
        {.destinations = &to, .destination_count = 1, .sources = &from, .source_count = 1, .bytes = 4});
    EXPECT_EQ(std::memcmp(in, out, 4), 0) << table->isa;
    std::uint8_t small[4] = {};
    table->reduce_small[static_cast<std::size_t>(Dtype::f8e5m2)][static_cast<std::size_t>(Op::sum)](
        reinterpret_cast<std::byte*>(small), &from, 1, 4);
    EXPECT_EQ(std::memcmp(in, small, 4), 0) << table->isa;
  }
}

}  // namespace
}  // namespace tutti
