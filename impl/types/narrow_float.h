// SPDX-License-Identifier: Apache-2.0
// Floats of 8 and 16 bits: half, f8e4m3 and f8e5m2 (bfloat16.h has the other one). A sign, an exponent and mantissa
// bits with subnormals, as bits and two conversions. All arithmetic is done in float and rounded to nearest even once,
// on the store.
//
//   name     exponent  mantissa  largest  infinity  what is too large for it becomes
//   half     5         10        65504    yes       infinity (IEEE)
//   f8e4m3   4         3         448      no        the largest, an infinity too
//   f8e5m2   5         2         57344    yes       the largest, an infinity too
//
// The last two are CUDA's conversions with saturation to finite, which NCCL uses: every NaN becomes 0x7f, without its
// sign. A NaN of half keeps its sign and the upper bits of its payload, as the CPU's own conversion does.
#pragma once

#include <cstdint>

#include "impl/types/host_device.h"

namespace tutti {

enum class Specials : std::uint8_t {
  ieee,        ///< infinities, and overflow becomes one
  saturating,  ///< infinities that no conversion makes
  nan_only,    ///< no infinities: the codes above the largest value are one NaN and its negative
};

template <class Storage_, int mantissa_bits, Specials specials>
struct NarrowFloat {
  using Storage = Storage_;
  Storage bits;

  static constexpr int kBits = 8 * static_cast<int>(sizeof(Storage));
  static constexpr int kMantissaBits = mantissa_bits;
  static constexpr int kExponentBits = kBits - 1 - mantissa_bits;
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr bool kSaturates = specials != Specials::ieee;
  static constexpr std::uint32_t kSign = 1U << (kBits - 1);
  static constexpr std::uint32_t kTopExponent = ((1U << kExponentBits) - 1U) << mantissa_bits;
  /// The code of the largest finite value; larger magnitudes are infinity or NaN.
  static constexpr std::uint32_t kLargest = specials == Specials::nan_only ? kSign - 2U : kTopExponent - 1U;

  [[nodiscard]] TUTTI_HOST_DEVICE static NarrowFloat from_float(float value) {
    const std::uint32_t word = __builtin_bit_cast(std::uint32_t, value);
    const std::uint32_t magnitude = word & 0x7fffffffU;
    const std::uint32_t sign = (word >> 31U) << (kBits - 1);
    if (magnitude > 0x7f800000U) {
      const std::uint32_t payload = (magnitude >> (23 - mantissa_bits)) & ((1U << mantissa_bits) - 1U);
      if (kSaturates) return {static_cast<Storage>(0x7fU)};
      return {static_cast<Storage>(sign | kTopExponent | 1U << (mantissa_bits - 1) | payload)};
    }
    // The significand, shifted down to units of the result, and further for a value that is subnormal there.
    constexpr int kLeastExponent = 128 - kBias;  // of a normal result, with the bias of float
    const int exponent = static_cast<int>(magnitude >> 23U);
    const std::uint32_t significand = (magnitude & 0x7fffffU) | (exponent == 0 ? 0U : 0x800000U);
    const int below = exponent < kLeastExponent ? kLeastExponent - exponent : 0;
    const int shift = 23 - mantissa_bits + below < 26 ? 23 - mantissa_bits + below : 26;
    const std::uint32_t tie = 1U << (shift - 1);
    const std::uint32_t lost = significand & (2U * tie - 1U);
    std::uint32_t code = significand >> shift;
    code += (lost > tie || (lost == tie && code % 2 == 1)) ? 1U : 0U;
    // The hidden bit adds one to the exponent of a normal result, and so does a carry.
    code += static_cast<std::uint32_t>(exponent + below - kLeastExponent) << mantissa_bits;
    if (code > kLargest) code = kSaturates ? kLargest : kTopExponent;
    return {static_cast<Storage>(code | sign)};
  }

  [[nodiscard]] TUTTI_HOST_DEVICE float to_float() const {
    const std::uint32_t magnitude = bits & (kSign - 1U);
    const std::uint32_t sign = static_cast<std::uint32_t>(bits >> (kBits - 1)) << 31U;
    const std::uint32_t shifted = magnitude << (23 - mantissa_bits);
    // Moving the exponent by a product makes subnormals right as well.
    const float scale = __builtin_bit_cast(float, static_cast<std::uint32_t>(254 - kBias) << 23U);
    const float finite = __builtin_bit_cast(float, shifted) * scale;
    const std::uint32_t word = magnitude > kLargest ? shifted | 0x7f800000U : __builtin_bit_cast(std::uint32_t, finite);
    return __builtin_bit_cast(float, word | sign);
  }
};

using Half = NarrowFloat<std::uint16_t, 10, Specials::ieee>;
using Float8E4M3 = NarrowFloat<std::uint8_t, 3, Specials::nan_only>;
using Float8E5M2 = NarrowFloat<std::uint8_t, 2, Specials::saturating>;
static_assert(sizeof(Half) == 2 && sizeof(Float8E4M3) == 1 && sizeof(Float8E5M2) == 1);

}  // namespace tutti
