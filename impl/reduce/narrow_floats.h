// SPDX-License-Identifier: Apache-2.0
// The arithmetic of half, bfloat16, f8e4m3 and f8e5m2: widened to float on the load, combined in float, rounded to
// nearest even once, on the store.
//
// Neighbours in memory are the parts of one 32-bit word, the first one the lowest. Part p of all words of a vector is
// one vector of floats. Shifts and masks widen all parts, with no shuffles as a conversion of vectors needs, and with
// the same text for every width and instruction set. Half uses the CPU's own conversions where it has them; the bits
// are the same.
#pragma once

#include "impl/reduce/floats.h"
#include "impl/reduce/vector.h"
#include "impl/types/bfloat16.h"
#include "impl/types/narrow_float.h"

#ifdef __F16C__
#include <immintrin.h>
#endif

namespace tutti::TUTTI_ISA {

template <int bytes>
using Words = Vector<std::uint32_t, bytes>;
template <int bytes>
using SignedWords = Vector<std::int32_t, bytes>;  // of magnitudes: older CPUs compare no unsigned numbers
template <int bytes>
using FloatVector = Vector<float, bytes>;

/// One part of every word as floats, and floats as that part of words that are empty elsewhere.
template <class T, int bytes>
struct Part {
  static constexpr int kDropped = 23 - T::kMantissaBits;  // mantissa bits that float has and T has not
  static constexpr std::int32_t kLeastNormal = (128 - T::kBias) << 23;
  /// Larger magnitudes are stored as this one: the largest finite, or, to become infinity, the power of two above it.
  static constexpr std::int32_t kMost =
      T::kSaturates ? static_cast<std::int32_t>(T::kLargest << kDropped) + ((127 - T::kBias) << 23)
                    : static_cast<std::int32_t>(T::kTopExponent << kDropped) + ((127 - T::kBias) << 23);

  TUTTI_INLINE static FloatVector<bytes> load(Words<bytes> words, int part) {
    const Words<bytes> code = words >> static_cast<std::uint32_t>(part * T::kBits);
    const Words<bytes> magnitude = code & (T::kSign - 1U);
    const Words<bytes> shifted = magnitude << static_cast<std::uint32_t>(kDropped);
    // Moving the exponent by a product makes subnormals right as well.
    const float scale = __builtin_bit_cast(float, static_cast<std::uint32_t>(254 - T::kBias) << 23U);
    const auto finite = __builtin_bit_cast(Words<bytes>, __builtin_bit_cast(FloatVector<bytes>, shifted) * scale);
    const auto is_special = __builtin_bit_cast(SignedWords<bytes>, magnitude) > static_cast<std::int32_t>(T::kLargest);
    const Words<bytes> word = is_special ? shifted | 0x7f800000U : finite;
    const Words<bytes> sign = (code & T::kSign) << static_cast<std::uint32_t>(32 - T::kBits);
    return __builtin_bit_cast(FloatVector<bytes>, word | sign);
  }

  TUTTI_INLINE static Words<bytes> store(FloatVector<bytes> value, int part) {
    const auto word = __builtin_bit_cast(Words<bytes>, value);
    const auto magnitude = __builtin_bit_cast(SignedWords<bytes>, word & 0x7fffffffU);
    const Words<bytes> sign = (word >> static_cast<std::uint32_t>(32 - T::kBits)) & T::kSign;
    const SignedWords<bytes> clamped = magnitude > kMost ? SignedWords<bytes>{} + kMost : magnitude;
    // Normal results: half a unit less one, and one more where that makes a tie even; a carry raises the exponent.
    const SignedWords<bytes> odd = (clamped >> kDropped) & 1;
    const SignedWords<bytes> normal =
        (clamped + odd + ((1 << (kDropped - 1)) - 1 - ((127 - T::kBias) << 23))) >> kDropped;
    // Subnormal ones: the float whose unit is theirs is added, which rounds, and subtracted as bits.
    constexpr std::int32_t kSameUnit = (127 + 1 - T::kBias + kDropped) << 23;
    const FloatVector<bytes> added = __builtin_bit_cast(FloatVector<bytes>, clamped) +
                                     __builtin_bit_cast(float, static_cast<std::uint32_t>(kSameUnit));
    const SignedWords<bytes> subnormal = __builtin_bit_cast(SignedWords<bytes>, added) - kSameUnit;
    const auto code = __builtin_bit_cast(Words<bytes>, clamped < kLeastNormal ? subnormal : normal) | sign;
    const auto is_nan = magnitude > 0x7f800000;
    return (is_nan ? nan_of(word, sign) : code) << static_cast<std::uint32_t>(part * T::kBits);
  }

 private:
  TUTTI_INLINE static Words<bytes> nan_of(Words<bytes> word, Words<bytes> sign) {
    constexpr std::uint32_t kQuiet = T::kTopExponent | 1U << (T::kMantissaBits - 1);
    if constexpr (T::kSaturates) return Words<bytes>{} + 0x7fU;
    return (word >> static_cast<std::uint32_t>(kDropped) & ((1U << T::kMantissaBits) - 1U)) | kQuiet | sign;
  }
};

/// The upper half of a float as it stands is nearly a float. Rounding carries nothing out of a NaN with an empty lower
/// half, as those of the sources are and those that a CPU makes. A GPU makes 0x7fffffff, which would become -0. To look
/// for it takes vectors half as long again.
template <int bytes>
struct Part<BFloat16, bytes> {
  static constexpr bool kComparesNans = bytes == sizeof(std::uint32_t);  // one word: what a GPU computes

  TUTTI_INLINE static FloatVector<bytes> load(Words<bytes> words, int part) {
    return __builtin_bit_cast(FloatVector<bytes>, part == 0 ? words << 16U : words & 0xffff0000U);
  }
  TUTTI_INLINE static Words<bytes> store(FloatVector<bytes> value, int part) {
    const auto word = __builtin_bit_cast(Words<bytes>, value);
    Words<bytes> rounded = word + 0x7fffU + ((word >> 16U) & 1U);
    if constexpr (kComparesNans) {
      const bool is_nan = (word & 0x7fffffffU) > 0x7f800000U;
      const Words<bytes> quiet = (word & 0xffffU) != 0 ? 0x400000U : 0U;
      rounded = is_nan ? word | quiet : rounded;
    }
    return part == 0 ? rounded >> 16U : rounded & 0xffff0000U;
  }
};

/// Elements in memory, `bytes` of them together, and `kParts` vectors of floats.
template <class T, int bytes>
struct Conversion {
  static constexpr int kWide = bytes < 4 ? 4 : bytes;
  static constexpr int kParts = (bytes < 4 ? bytes : 4) / static_cast<int>(sizeof(T));
  static constexpr int kPartBytes = kWide;
  using Storage =
      std::conditional_t<bytes == 1, std::uint8_t, std::conditional_t<bytes == 2, std::uint16_t, Words<kWide>>>;
  struct Accumulator {
    FloatVector<kPartBytes> part[kParts];
  };

  TUTTI_INLINE static Accumulator load(Storage stored) {
    const Words<kWide> words = Words<kWide>{} | stored;
    Accumulator value;
    TUTTI_UNROLL
    for (int p = 0; p < kParts; ++p) value.part[p] = Part<T, kWide>::load(words, p);
    return value;
  }
  TUTTI_INLINE static Storage store(Accumulator value) {
    Words<kWide> words{};
    TUTTI_UNROLL
    for (int p = 0; p < kParts; ++p) words |= Part<T, kWide>::store(value.part[p], p);
    return static_cast<Storage>(words);
  }
};
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "part 0 is the first of the neighbours");

#ifdef __F16C__
/// 16 bytes of halves or more: the two parts are their lower and their upper half.
template <int bytes>
requires(bytes >= 16) struct Conversion<Half, bytes> {
  static constexpr int kParts = 2;
  using Storage = Words<bytes>;
  using Part = FloatVector<bytes>;
  struct Accumulator {
    Part part[kParts];
  };
  struct Parts {
    Words<bytes / 2> part[kParts];
  };

  TUTTI_INLINE static Accumulator load(Storage stored) {
    const auto halves = __builtin_bit_cast(Parts, stored);
    return {{widened(halves.part[0]), widened(halves.part[1])}};
  }
  TUTTI_INLINE static Storage store(Accumulator value) {
    return __builtin_bit_cast(Storage, Parts{{narrowed(value.part[0]), narrowed(value.part[1])}});
  }

 private:
  static constexpr std::uint16_t kEvery = 0xffff;  // GCC 12 warns of the forms without a mask

  TUTTI_INLINE static Part widened(Words<bytes / 2> halves) {
    if constexpr (bytes == 16) {
      struct Register {
        Words<8> lower, upper;
      };
      return _mm_cvtph_ps(__builtin_bit_cast(__m128i, Register{halves, {}}));
    } else if constexpr (bytes == 32) {
      return _mm256_cvtph_ps(__builtin_bit_cast(__m128i, halves));
    } else {
#ifdef __AVX512F__
      return _mm512_maskz_cvtph_ps(kEvery, __builtin_bit_cast(__m256i, halves));
#endif
    }
  }
  TUTTI_INLINE static Words<bytes / 2> narrowed(Part value) {
    if constexpr (bytes == 16) {
      struct Register {
        Words<8> lower, upper;
      };
      return __builtin_bit_cast(Register, _mm_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT)).lower;
    } else if constexpr (bytes == 32) {
      return __builtin_bit_cast(Words<16>, _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
    } else {
#ifdef __AVX512F__
      return __builtin_bit_cast(Words<32>, _mm512_maskz_cvtps_ph(kEvery, value, _MM_FROUND_TO_NEAREST_INT));
#endif
    }
  }
};
#endif

/// Part by part as float.
template <class T, int bytes>
struct NarrowFloats : Conversion<T, bytes> {
  using Accumulator = typename Conversion<T, bytes>::Accumulator;
  static constexpr int kParts = Conversion<T, bytes>::kParts;
  using Wide = Arithmetic<float, static_cast<int>(sizeof(Accumulator)) / kParts>;

  TUTTI_INLINE static Accumulator sum(Accumulator a, Accumulator b) { return by_part<Wide::sum>(a, b); }
  TUTTI_INLINE static Accumulator prod(Accumulator a, Accumulator b) { return by_part<Wide::prod>(a, b); }
  TUTTI_INLINE static Accumulator min(Accumulator a, Accumulator b) { return by_part<Wide::min>(a, b); }
  TUTTI_INLINE static Accumulator max(Accumulator a, Accumulator b) { return by_part<Wide::max>(a, b); }
  TUTTI_INLINE static Accumulator divided(Accumulator a, int ranks) {
    TUTTI_UNROLL
    for (int p = 0; p < kParts; ++p) a.part[p] = Wide::divided(a.part[p], ranks);
    return a;
  }

 private:
  template <auto combine>
  TUTTI_INLINE static Accumulator by_part(Accumulator a, const Accumulator& b) {
    TUTTI_UNROLL
    for (int p = 0; p < kParts; ++p) a.part[p] = combine(a.part[p], b.part[p]);
    return a;
  }
};

template <int bytes>
struct Arithmetic<BFloat16, bytes> : NarrowFloats<BFloat16, bytes> {};
template <int bytes>
struct Arithmetic<Half, bytes> : NarrowFloats<Half, bytes> {};
template <int bytes>
struct Arithmetic<Float8E4M3, bytes> : NarrowFloats<Float8E4M3, bytes> {};
template <int bytes>
struct Arithmetic<Float8E5M2, bytes> : NarrowFloats<Float8E5M2, bytes> {};

}  // namespace tutti::TUTTI_ISA
