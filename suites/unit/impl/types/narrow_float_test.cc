// SPDX-License-Identifier: Apache-2.0
#include "impl/types/narrow_float.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "suites/unit/impl/types/reference_float.h"

namespace tutti {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class T>
class NarrowFloats : public testing::Test {};
using Types = testing::Types<Half, Float8E4M3, Float8E5M2, BFloat16>;
TYPED_TEST_SUITE(NarrowFloats, Types);

TYPED_TEST(NarrowFloats, EveryCodeIsWidenedToItsValueAndBack) {
  for (unsigned code = 0; code < 2 * Definition<TypeParam>::sign; ++code) {
    const TypeParam element{static_cast<decltype(TypeParam::bits)>(code)};
    const double value = reference_value(element);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(element.to_float())) << code;
      EXPECT_TRUE(std::isnan(reference_value(TypeParam::from_float(element.to_float())))) << code;
      continue;
    }
    EXPECT_EQ(static_cast<double>(element.to_float()), value) << code;
    EXPECT_EQ(std::signbit(element.to_float()), std::signbit(value)) << code;
    if (std::isfinite(value)) {
      EXPECT_EQ(TypeParam::from_float(element.to_float()).bits, element.bits) << code;
    }
  }
}

TYPED_TEST(NarrowFloats, FloatsAreRoundedToTheNearestAndTiesToEven) {
  using D = Definition<TypeParam>;
  const auto check = [](float value) {
    ASSERT_EQ(TypeParam::from_float(value).bits, reference_code<TypeParam>(value).bits) << value;
    ASSERT_EQ(TypeParam::from_float(-value).bits, reference_code<TypeParam>(-value).bits) << -value;
  };
  // Every tie between neighbours, and the floats beside it; the last is halfway to what would follow the largest.
  const unsigned largest = reference_code<TypeParam>(D::largest).bits;
  for (unsigned code = 0; code <= largest; ++code) {
    const double below = reference_value(TypeParam{static_cast<decltype(TypeParam::bits)>(code)});
    const double step =
        std::ldexp(1, std::max(below == 0 ? -200 : std::ilogb(below) - D::mantissa_bits, D::least_step));
    const auto tie = static_cast<float>(below + step / 2);
    check(tie);
    check(std::nextafter(tie, 0.0F));
    check(std::nextafter(tie, kInfinity));
  }
  std::mt19937 random(3);
  for (int i = 0; i < 200000; ++i) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (!std::isnan(value)) check(value);
  }
  check(std::numeric_limits<float>::max());
  check(std::numeric_limits<float>::denorm_min());
  check(kInfinity);
  check(0.0F);
}

TEST(Half, OverflowsToInfinityFromHalfwayAboveTheLargest) {
  EXPECT_EQ(Half::from_float(65504).bits, 0x7bff);
  EXPECT_EQ(Half::from_float(65519.996F).bits, 0x7bff);
  EXPECT_EQ(Half::from_float(65520).bits, 0x7c00);
  EXPECT_EQ(Half::from_float(-65520).bits, 0xfc00);
  EXPECT_EQ(Half::from_float(1e30F).bits, 0x7c00);
  EXPECT_EQ(Half::from_float(kInfinity).bits, 0x7c00);
}

TEST(Half, KeepsSubnormalsAndTheSignOfZero) {
  EXPECT_EQ(Half::from_float(0x1p-24F).bits, 0x0001);
  EXPECT_EQ(Half::from_float(0x1p-25F).bits, 0x0000);      // a tie, to even
  EXPECT_EQ(Half::from_float(0x1.8p-24F).bits, 0x0002);    // a tie, to even
  EXPECT_EQ(Half::from_float(0x1.ffcp-15F).bits, 0x0400);  // rounded up into the normal numbers
  EXPECT_EQ(Half::from_float(-0.0F).bits, 0x8000);
}

TEST(Half, KeepsSignAndUpperPayloadOfANan) {
  EXPECT_EQ(Half::from_float(std::bit_cast<float>(0x7fc00000U)).bits, 0x7e00);
  EXPECT_EQ(Half::from_float(std::bit_cast<float>(0xffc02000U)).bits, 0xfe01);
  EXPECT_EQ(Half::from_float(std::bit_cast<float>(0x7f800001U)).bits, 0x7e00);  // a signalling one becomes quiet
}

TEST(Float8E4M3, SaturatesAt448) {
  EXPECT_EQ(Float8E4M3::from_float(448).bits, 0x7e);
  EXPECT_EQ(Float8E4M3::from_float(449).bits, 0x7e);
  EXPECT_EQ(Float8E4M3::from_float(464).bits, 0x7e);  // would be a tie with 480, whose code is the NaN
  EXPECT_EQ(Float8E4M3::from_float(1e30F).bits, 0x7e);
  EXPECT_EQ(Float8E4M3::from_float(kInfinity).bits, 0x7e);
  EXPECT_EQ(Float8E4M3::from_float(-kInfinity).bits, 0xfe);
  EXPECT_EQ(Float8E4M3::from_float(432).bits, 0x7e);  // a tie of 416 and 448, to even
  EXPECT_EQ(Float8E4M3::from_float(431).bits, 0x7d);
}

TEST(Float8E5M2, SaturatesAt57344) {
  EXPECT_EQ(Float8E5M2::from_float(57344).bits, 0x7b);
  EXPECT_EQ(Float8E5M2::from_float(61440).bits, 0x7b);  // IEEE would round to infinity
  EXPECT_EQ(Float8E5M2::from_float(kInfinity).bits, 0x7b);
  EXPECT_EQ(Float8E5M2::from_float(-kInfinity).bits, 0xfb);
  EXPECT_EQ(Float8E5M2{0x7c}.to_float(), kInfinity);
  EXPECT_EQ(Float8E5M2::from_float(0x1p-17F).bits, 0x00);  // half the least, a tie, to even
  EXPECT_EQ(Float8E5M2::from_float(0x1.1p-17F).bits, 0x01);
}

TEST(Float8, HasOneNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float value : {nan, -nan, std::bit_cast<float>(0xffffffffU)}) {
    EXPECT_EQ(Float8E4M3::from_float(value).bits, 0x7f);
    EXPECT_EQ(Float8E5M2::from_float(value).bits, 0x7f);
  }
  EXPECT_TRUE(std::isnan(Float8E4M3{0xff}.to_float()));
  for (const int code : {0x7d, 0x7e, 0x7f, 0xfd}) {
    EXPECT_TRUE(std::isnan(Float8E5M2{static_cast<std::uint8_t>(code)}.to_float()));
  }
}

}  // namespace
}  // namespace tutti
