// SPDX-License-Identifier: Apache-2.0
// The value of one element of an input, from a hash of its index: arithmetic without branches, which GCC vectorises.
// inputs.h says what is promised of the values; here is how each kind of op gets them.
//
// Signed values of magnitude at most m. No subset of the ranks may add up to more than a limit L on either side. In
// every element, `active` ranks have such a value. Of these, `free` ranks choose the sign for themselves and the others
// are pairs of opposite signs. These roles go to other ranks from element to element: the ranks stand in a circle that
// is turned by a hash of the index. The summands of floats are such values (L: the significand), and so are the
// exponents of factors (L: the exponents of normal numbers).
//
// Where not all ranks are active the circle is turned by the index alone, and from refill to refill by as many places
// as are active. Once it has come round, over successive refills, every rank was active in every element.
#pragma once

#include <cstdint>
#include <type_traits>

#include "harness/floors.h"
#include "harness/verify/factor.h"
#include "impl/types/bfloat16.h"
#include "impl/types/host_device.h"
#include "impl/types/narrow_float.h"
#include "impl/types/op.h"

namespace tutti::harness::verify {

/// Element i of a stream is made from hash(i); of bytes that are any, or any but 0, four from one (inputs.cc).
struct HashKeys {
  std::uint32_t first = 0;
  std::uint32_t second = 0;
};
TUTTI_HOST_DEVICE inline std::uint32_t hash(std::uint32_t index, const HashKeys& keys) {
  std::uint32_t x = index * 0x9e3779b1U + keys.first;
  x = ((x ^ (x >> 15U)) ^ keys.second) * 0x85ebca6bU;
  x = (x ^ (x >> 13U)) * 0xc2b2ae35U;
  return x ^ (x >> 16U);
}

/// The constants of one input, for one upper half of the index.
struct Stream {
  HashKeys own;
  HashKeys common;  ///< the same on all ranks
  std::uint32_t rank;
  std::uint32_t ranks;
  std::uint32_t seat;         ///< the rank's place in the circle before that is turned
  std::uint32_t steady;       ///< all bits set: the circle is turned alike in every refill
  std::uint32_t steady_turn;  ///< by this and the index
  std::uint32_t rank_mask;    ///< low bits that hold the rank
  std::uint32_t rank_bits;    ///< the rank, mixed with what all ranks have in common
  std::uint32_t active;       ///< ranks with a value in each element
  std::uint32_t free;         ///< of them, with a sign of their own
  std::uint64_t magnitudes;   ///< mask of magnitude - 1
};

/// Whether roles need a look: not where every rank is free.
enum class Sharing : std::uint8_t { all_free, by_role };

/// What a rank is in one element.
struct Role {
  std::uint32_t common;     ///< hash of the index, the same on all ranks
  std::uint32_t place;      ///< in the circle, from 0 to ranks - 1
  std::uint32_t is_active;  ///< 0 or 1, and so on
  std::uint32_t is_negative;
};
TUTTI_HOST_DEVICE inline Role role_of(std::uint32_t index, std::uint32_t own_hash, const Stream& stream) {
  const std::uint32_t common = hash(index, stream.common);
  const std::uint32_t steady = index * 0x9e3779b1U + stream.steady_turn;
  const std::uint32_t turn = (common & ~stream.steady) | (steady & stream.steady);
  const std::uint32_t turned = stream.seat + (((turn >> 16U) * stream.ranks) >> 16U);
  const std::uint32_t place = turned - (turned >= stream.ranks ? stream.ranks : 0U);
  const std::uint32_t of_pairs = place - stream.free;
  const std::uint32_t of_pair = (((common + (of_pairs >> 1U) * 0x9e3779b1U) * 0x85ebca6bU) >> 31U) ^ (of_pairs & 1U);
  return {.common = common,
          .place = place,
          .is_active = place < stream.active ? 1U : 0U,
          .is_negative = place < stream.free ? own_hash >> 31U : of_pair};
}

/// The bits of a float of any width.
template <class T>
struct Format {
  using Code = typename T::Storage;
  static constexpr int kMantissaBits = T::kMantissaBits;
  static constexpr int kExponentBits = T::kExponentBits;
};
template <>
struct Format<BFloat16> {
  using Code = std::uint16_t;
  static constexpr int kMantissaBits = 7;
  static constexpr int kExponentBits = 8;
};
template <>
struct Format<float> {
  using Code = std::uint32_t;
  static constexpr int kMantissaBits = 23;
  static constexpr int kExponentBits = 8;
};
template <>
struct Format<double> {
  using Code = std::uint64_t;
  static constexpr int kMantissaBits = 52;
  static constexpr int kExponentBits = 11;
};
template <class T>
TUTTI_HOST_DEVICE constexpr int bias_of() {
  return (1 << (Format<T>::kExponentBits - 1)) - 1;
}

/// Random bits in the width of U.
template <class U>
TUTTI_HOST_DEVICE U widened(std::uint32_t h) {
  if constexpr (sizeof(U) == 8) return (U{h} << 32U) | (h * 0x9e3779b1U);
  return static_cast<U>(h);
}

/// 1 instead of 0.
template <class U>
TUTTI_HOST_DEVICE U without_zero(U value) {
  return static_cast<U>(value | static_cast<U>(value == 0));
}

/// The hash with the rank in its low bits.
TUTTI_HOST_DEVICE inline std::uint32_t with_rank(std::uint32_t h, std::uint32_t index, const Stream& stream) {
  return (h & ~stream.rank_mask) | ((stream.rank_bits ^ index) & stream.rank_mask);
}

/// Any integer; of floats the exponents of the middle half: no NaN, infinity, subnormal or zero.
template <class T>
TUTTI_HOST_DEVICE T arbitrary(std::uint32_t index, const Stream& stream) {
  const std::uint32_t h = with_rank(hash(index, stream.own), index, stream);
  if constexpr (std::is_integral_v<T>) {
    return widened<T>(h);
  } else {
    using Code = typename Format<T>::Code;
    constexpr int kMantissa = Format<T>::kMantissaBits, kExponent = Format<T>::kExponentBits;
    constexpr Code kLowExponents = static_cast<Code>(((Code{1} << (kExponent - 1)) - 1U) << kMantissa);
    constexpr Code kOffset = static_cast<Code>((Code{1} << (kExponent - 2)) << kMantissa);
    constexpr Code kRest = static_cast<Code>(Code{1} << (kMantissa + kExponent) | ((Code{1} << kMantissa) - 1U));
    const Code random = widened<Code>(h);
    return __builtin_bit_cast(
        T, static_cast<Code>((random & kRest) | static_cast<Code>((random & kLowExponents) + kOffset)));
  }
}

/// From 1 to the stream's greatest. Takes bits 8 to 27 of the hash, and where those are not enough a product as well.
template <class Unsigned>
TUTTI_HOST_DEVICE Unsigned magnitude(std::uint32_t h, const Stream& stream) {
  const std::uint32_t bits = h >> 8U;
  Unsigned value = bits;
  if constexpr (sizeof(Unsigned) == 8) value = (value << 20U) ^ ((bits * 0x85ebca6bU) >> 12U);
  return (value & static_cast<Unsigned>(stream.magnitudes)) + 1U;
}
template <class Unsigned>
TUTTI_HOST_DEVICE std::make_signed_t<Unsigned> signed_value(Unsigned magnitude, std::uint32_t is_negative) {
  const Unsigned mask = Unsigned{0} - is_negative;
  return static_cast<std::make_signed_t<Unsigned>>((magnitude ^ mask) - mask);
}

/// A float that T holds exactly, as a normal number or +0.
template <class T>
TUTTI_HOST_DEVICE T exactly(float value) {
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else {
    using Code = typename Format<T>::Code;
    const std::uint32_t word = __builtin_bit_cast(std::uint32_t, value);
    const std::uint32_t exponents_apart = static_cast<std::uint32_t>(127 - bias_of<T>()) << 23U;
    const std::uint32_t code =
        ((word & 0x7fffffffU) - (word == 0 ? 0U : exponents_apart)) >> (23 - Format<T>::kMantissaBits);
    constexpr int kSign = 8 * static_cast<int>(sizeof(T)) - 1;
    return __builtin_bit_cast(T, static_cast<Code>(code | (word >> 31U) << kSign));
  }
}

/// Integers: every value but 0. Floats: non-zero integers within the limits of the stream, 0 for a rank that is not
/// active. Floats with few values have them times 1, 2, 4 or 8, which all ranks choose alike.
template <class T, Sharing sharing>
TUTTI_HOST_DEVICE T summand(std::uint32_t index, const Stream& stream) {
  const std::uint32_t h = hash(index, stream.own);
  if constexpr (std::is_integral_v<T>) {
    return without_zero(widened<T>(h));
  } else {
    Role role{.common = 0, .place = 0, .is_active = 1, .is_negative = h >> 31U};
    if constexpr (sharing == Sharing::by_role) role = role_of(index, h, stream);
    if constexpr (std::is_same_v<T, double>) {
      return static_cast<double>(signed_value(magnitude<std::uint64_t>(h, stream) * role.is_active, role.is_negative));
    } else {
      std::uint32_t steps = magnitude<std::uint32_t>(h, stream) * role.is_active;
      if constexpr (sizeof(T) == 1) steps <<= role.common & 3U;
      return exactly<T>(static_cast<float>(signed_value(steps, role.is_negative)));
    }
  }
}

/// What times this rank's factor is a summand; of integers, any but 0.
template <class T>
TUTTI_HOST_DEVICE T before_factor(std::uint32_t index, const Stream& stream) {
  const T value = summand<T, Sharing::by_role>(index, stream);
  const int factor = factor_of(static_cast<int>(stream.rank));
  if constexpr (std::is_integral_v<T>) {
    return value;
  } else if constexpr (std::is_same_v<T, double>) {
    return value / factor;
  } else if constexpr (std::is_same_v<T, float>) {
    return value / static_cast<float>(factor);
  } else {
    return exactly<T>(value.to_float() / static_cast<float>(factor));
  }
}

/// Integers: odd, so that products never become zero, and not 1. Floats: a power of two other than 1, of either sign,
/// or -1 for a rank that is not active. In every element one rank has random mantissa bits as well.
template <class T>
TUTTI_HOST_DEVICE T factor(std::uint32_t index, const Stream& stream) {
  const std::uint32_t h = hash(index, stream.own);
  if constexpr (std::is_integral_v<T>) {
    const T value = static_cast<T>(widened<T>(h) | 1U);
    return static_cast<T>(value | static_cast<T>(T{value == 1} << 1U));
  } else {
    using Code = typename Format<T>::Code;
    constexpr int kMantissa = Format<T>::kMantissaBits;
    const Role role = role_of(index, h, stream);
    const std::int32_t exponent =
        signed_value(magnitude<std::uint32_t>(h, stream) * role.is_active, role.is_negative) + bias_of<T>();
    const Code mantissa = static_cast<Code>(widened<Code>(h * 0x9e3779b1U) & ((Code{1} << kMantissa) - 1U));
    const Code carried = static_cast<Code>(mantissa * static_cast<Code>(role.place == 0));
    const Code sign = static_cast<Code>(((h >> 7U) | ~role.is_active) & 1U);
    constexpr int kSign = 8 * static_cast<int>(sizeof(T)) - 1;
    return __builtin_bit_cast(T,
                              static_cast<Code>(static_cast<Code>(sign << kSign) |
                                                static_cast<Code>(static_cast<Code>(exponent) << kMantissa) | carried));
  }
}

/// The bits of a float with a random sign and mantissa, and the exponent of `power_of_two`.
template <class T>
TUTTI_HOST_DEVICE T with_exponent(std::uint32_t h, std::uint32_t exponent, std::uint32_t is_negative) {
  using Code = typename Format<T>::Code;
  constexpr int kMantissa = Format<T>::kMantissaBits;
  constexpr int kSign = 8 * static_cast<int>(sizeof(T)) - 1;
  const Code mantissa = static_cast<Code>(widened<Code>(h) & ((Code{1} << kMantissa) - 1U));
  const Code code = static_cast<Code>(static_cast<Code>(exponent) << kMantissa);
  return __builtin_bit_cast(
      T, static_cast<Code>(static_cast<Code>(static_cast<Code>(is_negative) << kSign) | code | mantissa));
}

/// Of either sign, from 1/16 to below 1: each of the four binades as often.
template <class T>
TUTTI_HOST_DEVICE T random_summand(std::uint32_t index, const Stream& stream) {
  const std::uint32_t h = hash(index, stream.own);
  const std::uint32_t other = (h ^ (h >> 15U)) * 0x2c1b3c6dU;
  return with_exponent<T>(h, static_cast<std::uint32_t>(bias_of<T>() - 1) - ((other >> 28U) & 3U), other >> 31U);
}

/// Ranks of which a product of random factors has a mantissa; the others have 1 or -1. So it stays a normal number.
template <class T>
constexpr std::uint32_t kRandomFactors = sizeof(T) == 1 ? 4 : 8;

/// Of either sign, from 1/2 to below 2.
template <class T>
TUTTI_HOST_DEVICE T random_factor(std::uint32_t index, const Stream& stream) {
  const std::uint32_t h = hash(index, stream.own);
  const std::uint32_t other = (h ^ (h >> 15U)) * 0x2c1b3c6dU;
  const std::uint32_t has_mantissa = role_of(index, h, stream).place < kRandomFactors<T> ? 1U : 0U;
  const std::uint32_t exponent = static_cast<std::uint32_t>(bias_of<T>()) - (has_mantissa & (other >> 28U));
  return with_exponent<T>(h & (0U - has_mantissa), exponent, other >> 31U);
}

/// For bor: each bit is set with a probability of about 1/P, so that single ranks show. band: cleared. bxor: random.
template <class U, Op op>
TUTTI_HOST_DEVICE U bits(std::uint32_t index, const Stream& stream) {
  const std::uint32_t h = hash(index, stream.own);
  U value = widened<U>(h);
  if constexpr (op == Op::bxor) return without_zero(value);
  constexpr std::uint32_t kMost = 12;
  std::uint32_t x = h;
  for (std::uint32_t level = 1; level < kMost; ++level) {
    x = (x ^ (x >> 15U)) * 0x2c1b3c6dU + level;
    const U skips = static_cast<U>(U{0} - static_cast<U>((std::uint32_t{1} << level) >= stream.ranks));
    value = static_cast<U>(value & (widened<U>(x ^ (x >> 16U)) | skips));
  }
  return op == Op::band ? static_cast<U>(~value) : value;
}

/// 0 or 1. Where one true rank decides, each is true with a probability of about 1/P; where one false rank does, false.
template <Op op>
TUTTI_HOST_DEVICE Boolean truth(std::uint32_t index, const Stream& stream) {
  if constexpr (op == Op::none) {
    return static_cast<Boolean>(hash(index, stream.own) >> 31U);
  } else {
    constexpr Op kDecides = op == Op::min || op == Op::band ? Op::band : Op::bor;
    return static_cast<Boolean>(bits<std::uint8_t, kDecides>(index, stream) & 1U);
  }
}

}  // namespace tutti::harness::verify
