// SPDX-License-Identifier: Apache-2.0
// What premul_sum multiplies by, in literals: wrapping, rounding, saturation, and any alignment.
#include "impl/reduce/scale.h"

#include <cstring>
#include <type_traits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

using testing::ElementsAre;

template <class T>
std::vector<T> scaled(Dtype dtype, const std::vector<T>& values, T by) {
  Factor factor{};
  std::memcpy(factor.data(), &by, sizeof(T));
  const std::size_t bytes = values.size() * sizeof(T);
  std::vector<std::byte> memory(bytes + 1);  // one byte off, so that nothing is aligned
  std::memcpy(memory.data() + 1, values.data(), bytes);
  scale_for(dtype)(memory.data() + 1, memory.data() + 1, bytes, factor);
  std::vector<T> result(values.size());
  std::memcpy(result.data(), memory.data() + 1, bytes);
  return result;
}

template <class T>
std::vector<int> scaled_codes(Dtype dtype, const std::vector<int>& codes, int by) {
  std::vector<T> values;
  for (const int code : codes) values.push_back({static_cast<decltype(T::bits)>(code)});
  std::vector<int> result;
  for (const T value : scaled<T>(dtype, values, {static_cast<decltype(T::bits)>(by)})) result.push_back(value.bits);
  return result;
}

TEST(Scale, WrapsIntegers) {
  EXPECT_THAT(scaled<std::int8_t>(Dtype::i8, {100, -1, -128}, 3), ElementsAre(44, -3, -128));
  EXPECT_THAT(scaled<std::uint8_t>(Dtype::u8, {200, 1}, 2), ElementsAre(144, 2));
  EXPECT_THAT(scaled<std::int32_t>(Dtype::i32, {2147483647, -5}, 2), ElementsAre(-2, -10));
  EXPECT_THAT(scaled<std::uint32_t>(Dtype::u32, {2147483649U}, 2), ElementsAre(2U));
  EXPECT_THAT(scaled<std::int64_t>(Dtype::i64, {std::int64_t{1} << 62, -3}, 4), ElementsAre(0, -12));
  EXPECT_THAT(scaled<std::uint64_t>(Dtype::u64, {~std::uint64_t{0}}, 3), ElementsAre(~std::uint64_t{0} - 2));
}

TEST(Scale, RoundsFloatsInTheirOwnPrecision) {
  EXPECT_THAT(scaled<float>(Dtype::f32, {3, -0.5F}, 1.0F / 3.0F), ElementsAre(1.0F, -1.0F / 6.0F));
  EXPECT_THAT(scaled<double>(Dtype::f64, {3, 1e300}, 1e10), ElementsAre(3e10, std::numeric_limits<double>::infinity()));
}

TEST(Scale, RoundsNarrowFloatsOnceToNearestEven) {
  EXPECT_THAT(scaled_codes<BFloat16>(Dtype::bf16, {0x3f81, 0x3f83}, 0x3fc0), ElementsAre(0x3fc2, 0x3fc4));  // ties
  EXPECT_THAT(scaled_codes<Half>(Dtype::f16, {0x7bff, 0x3c00}, 0x4000), ElementsAre(0x7c00, 0x4000));
  EXPECT_THAT(scaled_codes<Float8E4M3>(Dtype::f8e4m3, {0x7e, 0x38}, 0x40), ElementsAre(0x7e, 0x40));  // saturates
  EXPECT_THAT(scaled_codes<Float8E5M2>(Dtype::f8e5m2, {0x7b, 0x3c}, 0x40), ElementsAre(0x7b, 0x40));
}

}  // namespace
}  // namespace tutti
