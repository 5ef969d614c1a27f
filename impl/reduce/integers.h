// SPDX-License-Identifier: Apache-2.0
// The arithmetic of integers. Sums and products wrap, min and max are those of the type, quotients are truncated
// towards zero. The operations on bits are the same for every integer.
#pragma once

#include "impl/reduce/vector.h"

namespace tutti::TUTTI_ISA {

/// What quotients are computed in, exactly. A quotient that is not whole is at least 1/P away from the next whole
/// number. Relatively that is one part in 2^8 (8 bits) or 2^32 (32 bits). float errs by 2^-24 and double by 2^-53, and
/// the conversion back truncates.
template <class Element>
using Quotient = std::conditional_t<sizeof(Element) == 1, float, double>;

template <class Element, int bytes>
struct Integers {
  using Storage = Vector<Element, bytes>;
  using Accumulator = Storage;
  using Word = Vector<std::make_unsigned_t<Element>, bytes>;  // wraps

  [[gnu::always_inline]] static inline Accumulator load(Storage stored) { return stored; }
  [[gnu::always_inline]] static inline Storage store(Accumulator value) { return value; }

  [[gnu::always_inline]] static inline Accumulator sum(Accumulator a, Accumulator b) {
    return __builtin_bit_cast(Accumulator, __builtin_bit_cast(Word, a) + __builtin_bit_cast(Word, b));
  }
  [[gnu::always_inline]] static inline Accumulator prod(Accumulator a, Accumulator b) {
    return __builtin_bit_cast(Accumulator, __builtin_bit_cast(Word, a) * __builtin_bit_cast(Word, b));
  }
  [[gnu::always_inline]] static inline Accumulator min(Accumulator a, Accumulator b) { return a < b ? a : b; }
  [[gnu::always_inline]] static inline Accumulator max(Accumulator a, Accumulator b) { return a > b ? a : b; }

  /// By floats where there are exact ones: no CPU divides vectors of integers.
  [[gnu::always_inline]] static inline Accumulator divided(Accumulator a, int ranks) {
    constexpr int kPieces = sizeof(Quotient<Element>) / sizeof(Element);
    if constexpr (sizeof(Element) == 8) {
      return a / static_cast<Element>(ranks);
    } else if constexpr (bytes / kPieces < static_cast<int>(sizeof(Element))) {
      Accumulator result{};
      for (int i = 0; i < bytes / static_cast<int>(sizeof(Element)); ++i) {
        result[i] = static_cast<Element>(static_cast<std::int64_t>(a[i]) / ranks);
      }
      return result;
    } else {
      using Piece = Vector<Element, bytes / kPieces>;
      using Wide = Vector<Quotient<Element>, bytes>;
      struct Pieces {
        Piece at[kPieces];
      };
      auto pieces = __builtin_bit_cast(Pieces, a);
      const auto divisor = static_cast<Quotient<Element>>(ranks);
#pragma GCC unroll 4
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
struct Arithmetic<std::int32_t, bytes> : Integers<std::int32_t, bytes> {};
template <int bytes>
struct Arithmetic<std::uint32_t, bytes> : Integers<std::uint32_t, bytes> {};
template <int bytes>
struct Arithmetic<std::int64_t, bytes> : Integers<std::int64_t, bytes> {};
template <int bytes>
struct Arithmetic<std::uint64_t, bytes> : Integers<std::uint64_t, bytes> {};

/// Bytes as they are: what a copy moves, and what band, bor and bxor combine, whatever integer they belong to.
struct Raw {
  std::uint8_t byte;
};
template <int bytes>
struct Arithmetic<Raw, bytes> {
  using Storage = Vector<std::uint8_t, bytes>;
  using Accumulator = Storage;

  [[gnu::always_inline]] static inline Accumulator load(Storage stored) { return stored; }
  [[gnu::always_inline]] static inline Storage store(Accumulator value) { return value; }
  [[gnu::always_inline]] static inline Accumulator band(Accumulator a, Accumulator b) { return a & b; }
  [[gnu::always_inline]] static inline Accumulator bor(Accumulator a, Accumulator b) { return a | b; }
  [[gnu::always_inline]] static inline Accumulator bxor(Accumulator a, Accumulator b) { return a ^ b; }
};

}  // namespace tutti::TUTTI_ISA
