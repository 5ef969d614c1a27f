// SPDX-License-Identifier: Apache-2.0
// The arithmetic of integers. Sums and products wrap, min and max are those of the type, quotients are truncated
// towards zero. The operations on bits are the same for every integer.
#pragma once

#include "impl/reduce/vector.h"
#include "impl/types/dtype.h"

namespace tutti::TUTTI_ISA {

/// What quotients are computed in, exactly. A quotient that is not whole is at least 1/P away from the next whole
/// number. Relatively that is one part in 2^8, 2^16 or 2^32, by the bits of the integer. float errs by 2^-24 and double
/// by 2^-53, and the conversion back truncates.
template <class Element>
using Quotient = std::conditional_t<(sizeof(Element) <= 2), float, double>;

/// What is the same for every integer: how it is moved, and the operations on bits.
template <class Element, int bytes>
struct Bits {
  using Storage = Vector<Element, bytes>;
  using Accumulator = Storage;

  TUTTI_INLINE static Accumulator load(Storage stored) { return stored; }
  TUTTI_INLINE static Storage store(Accumulator value) { return value; }
  TUTTI_INLINE static Accumulator band(Accumulator a, Accumulator b) { return static_cast<Accumulator>(a & b); }
  TUTTI_INLINE static Accumulator bor(Accumulator a, Accumulator b) { return static_cast<Accumulator>(a | b); }
  TUTTI_INLINE static Accumulator bxor(Accumulator a, Accumulator b) { return static_cast<Accumulator>(a ^ b); }
};

template <class Element, int bytes>
struct Integers : Bits<Element, bytes> {
  using Accumulator = Vector<Element, bytes>;
  using Word = Vector<std::make_unsigned_t<Element>, bytes>;  // wraps

  TUTTI_INLINE static Accumulator sum(Accumulator a, Accumulator b) {
    return __builtin_bit_cast(Accumulator,
                              static_cast<Word>(__builtin_bit_cast(Word, a) + __builtin_bit_cast(Word, b)));
  }
  TUTTI_INLINE static Accumulator prod(Accumulator a, Accumulator b) {
    if constexpr (bytes == sizeof(Element) && bytes < static_cast<int>(sizeof(unsigned))) {
      // Not as int, which a product of two words of 16 bits may exceed.
      return static_cast<Accumulator>(1U * __builtin_bit_cast(Word, a) * __builtin_bit_cast(Word, b));
    } else {
      return __builtin_bit_cast(Accumulator,
                                static_cast<Word>(__builtin_bit_cast(Word, a) * __builtin_bit_cast(Word, b)));
    }
  }
  TUTTI_INLINE static Accumulator min(Accumulator a, Accumulator b) { return a < b ? a : b; }
  TUTTI_INLINE static Accumulator max(Accumulator a, Accumulator b) { return a > b ? a : b; }

  /// By floats where there are exact ones: no CPU divides vectors of integers.
  TUTTI_INLINE static Accumulator divided(Accumulator a, int ranks) {
    if constexpr (sizeof(Element) == 8) {
      return a / static_cast<Element>(ranks);
    } else if constexpr (bytes <= static_cast<int>(sizeof(Quotient<Element>))) {
      struct Elements {
        Element at[bytes / sizeof(Element)];
      };
      auto elements = __builtin_bit_cast(Elements, a);
      using Wide = std::common_type_t<Element, int>;  // of 8 bits ranks need not be an Element
      for (Element& element : elements.at) element = static_cast<Element>(element / static_cast<Wide>(ranks));
      return __builtin_bit_cast(Accumulator, elements);
    } else {
      constexpr int kPieces = sizeof(Quotient<Element>) / sizeof(Element);
      using Piece = Vector<Element, bytes / kPieces>;
      using Wide = Vector<Quotient<Element>, bytes>;
      struct Pieces {
        Piece at[kPieces];
      };
      auto pieces = __builtin_bit_cast(Pieces, a);
      const auto divisor = static_cast<Quotient<Element>>(ranks);
      TUTTI_UNROLL
      for (int i = 0; i < kPieces; ++i) {
        pieces.at[i] = __builtin_convertvector(__builtin_convertvector(pieces.at[i], Wide) / divisor, Piece);
      }
      return __builtin_bit_cast(Accumulator, pieces);
    }
  }
};

template <int bytes>
struct Arithmetic<std::int8_t, bytes> : Integers<std::int8_t, bytes> {};
template <int bytes>
struct Arithmetic<std::uint8_t, bytes> : Integers<std::uint8_t, bytes> {};
template <int bytes>
struct Arithmetic<std::int16_t, bytes> : Integers<std::int16_t, bytes> {};
template <int bytes>
struct Arithmetic<std::uint16_t, bytes> : Integers<std::uint16_t, bytes> {};
template <int bytes>
struct Arithmetic<std::int32_t, bytes> : Integers<std::int32_t, bytes> {};
template <int bytes>
struct Arithmetic<std::uint32_t, bytes> : Integers<std::uint32_t, bytes> {};
template <int bytes>
struct Arithmetic<std::int64_t, bytes> : Integers<std::int64_t, bytes> {};
template <int bytes>
struct Arithmetic<std::uint64_t, bytes> : Integers<std::uint64_t, bytes> {};

/// Truth: a byte that is not 0 becomes 1 on the load, and then or and and are those of bits.
template <int bytes>
struct Arithmetic<Boolean, bytes> : Bits<std::uint8_t, bytes> {
  using typename Bits<std::uint8_t, bytes>::Storage;
  using typename Bits<std::uint8_t, bytes>::Accumulator;

  TUTTI_INLINE static Accumulator load(Storage stored) {
    const auto one = static_cast<Accumulator>(Accumulator{} | std::uint8_t{1});
    return stored < one ? stored : one;
  }
  TUTTI_INLINE static Accumulator sum(Accumulator a, Accumulator b) { return static_cast<Accumulator>(a | b); }
  TUTTI_INLINE static Accumulator max(Accumulator a, Accumulator b) { return static_cast<Accumulator>(a | b); }
  TUTTI_INLINE static Accumulator min(Accumulator a, Accumulator b) { return static_cast<Accumulator>(a & b); }
};

/// Bytes as they are: what a copy moves, and what band, bor and bxor combine, whatever integer they belong to.
struct Raw {
  std::uint8_t byte;
};
template <int bytes>
struct Arithmetic<Raw, bytes> : Bits<std::uint8_t, bytes> {};

}  // namespace tutti::TUTTI_ISA
