// SPDX-License-Identifier: Apache-2.0
// Floats of 8 and 16 bits from their definition, in double and with the functions of <cmath>. They are slow, and unlike
// both the conversions of impl/types and those of impl/reduce, which are tested against them.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "impl/types/bfloat16.h"
#include "impl/types/narrow_float.h"

namespace tutti {

/// What a number of T's width can hold: numbers up to `largest` in steps of the least one, 2^least_step, or of
/// 2^-mantissa_bits of the power of two below.
template <class T>
struct Definition;
template <>
struct Definition<Half> {
  static constexpr int mantissa_bits = 10, least_step = -24;
  static constexpr double largest = 65504;
  static constexpr unsigned sign = 0x8000, infinity = 0x7c00, overflow = 0x7c00;
};
template <>
struct Definition<BFloat16> {
  static constexpr int mantissa_bits = 7, least_step = -133;
  static constexpr double largest = 0x1.fep127;
  static constexpr unsigned sign = 0x8000, infinity = 0x7f80, overflow = 0x7f80;
};
template <>
struct Definition<Float8E4M3> {
  static constexpr int mantissa_bits = 3, least_step = -9;
  static constexpr double largest = 448;
  static constexpr unsigned sign = 0x80, infinity = 0x7f /* there is none: the NaN */, overflow = 0x7e;
};
template <>
struct Definition<Float8E5M2> {
  static constexpr int mantissa_bits = 2, least_step = -16;
  static constexpr double largest = 57344;
  static constexpr unsigned sign = 0x80, infinity = 0x7c, overflow = 0x7b;
};

/// The number that a code stands for.
template <class T>
double reference_value(T element) {
  using D = Definition<T>;
  const unsigned magnitude = element.bits & (D::sign - 1);
  const double sign = (element.bits & D::sign) != 0 ? -1.0 : 1.0;
  if (magnitude == D::infinity && D::infinity != 0x7f) return sign * std::numeric_limits<double>::infinity();
  if (magnitude >= D::infinity) return std::numeric_limits<double>::quiet_NaN();
  const unsigned exponent = magnitude >> D::mantissa_bits;
  const unsigned mantissa = magnitude % (1U << D::mantissa_bits);
  const unsigned hidden = exponent == 0 ? 0U : 1U << D::mantissa_bits;
  return sign * std::ldexp(mantissa + hidden, D::least_step + (exponent == 0 ? 0 : static_cast<int>(exponent) - 1));
}

/// The code of the nearest number, the even one at a tie; not for NaN.
template <class T>
T reference_code(double value) {
  using D = Definition<T>;
  const unsigned sign = std::signbit(value) ? D::sign : 0U;
  unsigned magnitude = 0;
  if (std::isinf(value)) {
    magnitude = D::overflow;
  } else if (value != 0) {
    const int step = std::max(std::ilogb(value) - D::mantissa_bits, D::least_step);
    const double steps = std::nearbyint(std::ldexp(std::abs(value), -step));
    const bool is_too_large = std::ldexp(steps, step) > D::largest;
    // The steps of a normal number count from its power of two on: one exponent further for each doubling of the step.
    magnitude = is_too_large
                    ? D::overflow
                    : (static_cast<unsigned>(step - D::least_step) << D::mantissa_bits) + static_cast<unsigned>(steps);
  }
  return {static_cast<decltype(T::bits)>(magnitude | sign)};
}

}  // namespace tutti
