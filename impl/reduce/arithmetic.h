// SPDX-License-Identifier: Apache-2.0
// The arithmetic of a reduction: how each dtype is widened, combined, divided and stored. Written on vectors of `bytes`
// bytes of memory, so that one text serves every width from a whole register down to one element, in every instruction
// set.
//
//   dtype     accumulates in  sum    max                           division (avg, at the final MOVE)
//   float     float           IEEE   NaN propagates, +0 above -0   IEEE, by float(P)
//   int32     int32           wraps  signed                        towards zero
//   bfloat16  float           IEEE   as float                      IEEE, by float(P); one rounding, on the store
//
// Adding a dtype is one row in impl/types/dtype.h and one `Arithmetic` here.
//
// This text is compiled once per instruction set. Everything lives in a namespace named by TUTTI_ISA, is forced inline,
// and calls no inline function of another header (not even std::bit_cast): the linker would keep one of the copies for
// all, and a CPU without AVX-512 would run the wrong one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "impl/types/bfloat16.h"
#include "impl/types/op.h"

#ifndef TUTTI_ISA
#define TUTTI_ISA isa_baseline
#endif

namespace tutti::TUTTI_ISA {

template <class Element, int bytes>
struct VectorOf {
  typedef Element type __attribute__((vector_size(bytes)));
};
template <class Element, int bytes>
using Vector = typename VectorOf<Element, bytes>::type;

/// What every Arithmetic<T, bytes> has: the types Storage (in memory) and Accumulator (in registers) and the functions
/// load, store, sum, max, divided. `bytes` is a power of two, from one element to a register.
template <class T, int bytes>
struct Arithmetic;

template <int bytes>
struct Arithmetic<float, bytes> {
  using Storage = Vector<float, bytes>;
  using Accumulator = Storage;
  using Word = Vector<std::uint32_t, bytes>;

  [[gnu::always_inline]] static inline Accumulator load(Storage stored) { return stored; }
  [[gnu::always_inline]] static inline Storage store(Accumulator value) { return value; }

  [[gnu::always_inline]] static inline Accumulator sum(Accumulator a, Accumulator b) { return a + b; }

  /// IEEE 754-2019 `maximum`: independent of the order but for the payload of a NaN, where the first one stays.
  [[gnu::always_inline]] static inline Accumulator max(Accumulator a, Accumulator b) {
    const Word both = __builtin_bit_cast(Word, a) & __builtin_bit_cast(Word, b);  // of equals: itself, and +0 of +0, -0
    const Accumulator larger = (a > b) | (a != a) ? a : b;                        // b is NaN: not a > b, so b
    return a == b ? __builtin_bit_cast(Accumulator, both) : larger;
  }

  [[gnu::always_inline]] static inline Accumulator divided(Accumulator a, int ranks) {
    return a / static_cast<float>(ranks);
  }
};

/// The bits of floats whose upper halves are those floats rounded to bfloat16, to nearest even. A NaN stays one without
/// a comparison: those of the sources and those that arithmetic makes have an empty lower half, so nothing is carried.
template <int bytes>
[[gnu::always_inline]] inline Vector<std::uint32_t, bytes> rounded_to_upper_half(Vector<float, bytes> value) {
  const auto word = __builtin_bit_cast(Vector<std::uint32_t, bytes>, value);
  return word + 0x7fffU + ((word >> 16U) & 1U);
}

/// Two neighbours in memory are the halves of one 32-bit word, and the upper half as it stands is nearly a float: both
/// are widened by a shift or a mask, with none of the shuffles that a conversion of vectors costs.
template <int bytes>
struct Arithmetic<BFloat16, bytes> {
  using Storage = Vector<std::uint32_t, bytes>;
  using Floats = Arithmetic<float, bytes>;
  struct Accumulator {
    Vector<float, bytes> lower, upper;
  };

  [[gnu::always_inline]] static inline Accumulator load(Storage stored) {
    return {__builtin_bit_cast(typename Floats::Storage, stored << 16U),
            __builtin_bit_cast(typename Floats::Storage, stored & 0xffff0000U)};
  }
  [[gnu::always_inline]] static inline Storage store(Accumulator value) {
    return rounded_to_upper_half<bytes>(value.lower) >> 16U | (rounded_to_upper_half<bytes>(value.upper) & 0xffff0000U);
  }
  [[gnu::always_inline]] static inline Accumulator sum(Accumulator a, Accumulator b) {
    return {Floats::sum(a.lower, b.lower), Floats::sum(a.upper, b.upper)};
  }
  [[gnu::always_inline]] static inline Accumulator max(Accumulator a, Accumulator b) {
    return {Floats::max(a.lower, b.lower), Floats::max(a.upper, b.upper)};
  }
  [[gnu::always_inline]] static inline Accumulator divided(Accumulator a, int ranks) {
    return {Floats::divided(a.lower, ranks), Floats::divided(a.upper, ranks)};
  }
};
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "lower is the first of the two neighbours");

/// One bfloat16 alone.
template <>
struct Arithmetic<BFloat16, 2> : Arithmetic<float, 4> {
  using Storage = std::uint16_t;

  [[gnu::always_inline]] static inline Accumulator load(Storage stored) {
    return __builtin_bit_cast(Accumulator, static_cast<std::uint32_t>(stored) << 16U);
  }
  [[gnu::always_inline]] static inline Storage store(Accumulator value) {
    return static_cast<Storage>(rounded_to_upper_half<4>(value)[0] >> 16U);
  }
};

template <int bytes>
struct Arithmetic<std::int32_t, bytes> {
  using Storage = Vector<std::int32_t, bytes>;
  using Accumulator = Storage;
  using Word = Vector<std::uint32_t, bytes>;

  [[gnu::always_inline]] static inline Accumulator load(Storage stored) { return stored; }
  [[gnu::always_inline]] static inline Storage store(Accumulator value) { return value; }

  [[gnu::always_inline]] static inline Accumulator sum(Accumulator a, Accumulator b) {
    return __builtin_bit_cast(Accumulator, __builtin_bit_cast(Word, a) + __builtin_bit_cast(Word, b));
  }
  [[gnu::always_inline]] static inline Accumulator max(Accumulator a, Accumulator b) { return a > b ? a : b; }

  /// In double, because no CPU divides vectors of integers. Exact: a quotient that is not whole is at least 1/P away
  /// from the next whole number, relatively 2^-31, and a double errs by 2^-53; the conversion back truncates.
  [[gnu::always_inline]] static inline Accumulator divided(Accumulator a, int ranks) {
    if constexpr (bytes == sizeof(std::int32_t)) {
      return Accumulator{a[0] / ranks};
    } else {
      using Half = Vector<std::int32_t, bytes / 2>;
      using Wide = Vector<double, bytes>;
      struct Halves {
        Half low, high;
      };
      auto halves = __builtin_bit_cast(Halves, a);
      const auto divisor = static_cast<double>(ranks);
      halves.low = __builtin_convertvector(__builtin_convertvector(halves.low, Wide) / divisor, Half);
      halves.high = __builtin_convertvector(__builtin_convertvector(halves.high, Wide) / divisor, Half);
      return __builtin_bit_cast(Accumulator, halves);
    }
  }
};

/// Bytes as they are: what a copy moves.
struct Raw {
  std::uint8_t byte;
};
template <int bytes>
struct Arithmetic<Raw, bytes> {
  using Storage = Vector<std::uint8_t, bytes>;
  using Accumulator = Storage;

  [[gnu::always_inline]] static inline Accumulator load(Storage stored) { return stored; }
  [[gnu::always_inline]] static inline Storage store(Accumulator value) { return value; }
};

/// `a op b`. avg is a sum that the final MOVE divides.
template <class A, Op op>
[[gnu::always_inline]] inline typename A::Accumulator combined(typename A::Accumulator a, typename A::Accumulator b) {
  static_assert(op == Op::sum || op == Op::avg || op == Op::max, "this op has no arithmetic yet");
  if constexpr (op == Op::max) {
    return A::max(a, b);
  } else {
    return A::sum(a, b);
  }
}

}  // namespace tutti::TUTTI_ISA
