// SPDX-License-Identifier: Apache-2.0
// The arithmetic of float and double: IEEE 754, and for min and max its 2019 `minimum` and `maximum`. A NaN propagates,
// and -0 lies below +0. So the result is independent of the order but for the payload of a NaN, where the first one
// stays.
#pragma once

#include "impl/reduce/vector.h"

namespace tutti::TUTTI_ISA {

template <class Element, class WordElement, int bytes>
struct Floats {
  using Storage = Vector<Element, bytes>;
  using Accumulator = Storage;
  using Word = Vector<WordElement, bytes>;

  TUTTI_INLINE static Accumulator load(Storage stored) { return stored; }
  TUTTI_INLINE static Storage store(Accumulator value) { return value; }

  TUTTI_INLINE static Accumulator sum(Accumulator a, Accumulator b) { return a + b; }
  TUTTI_INLINE static Accumulator prod(Accumulator a, Accumulator b) { return a * b; }

  TUTTI_INLINE static Accumulator min(Accumulator a, Accumulator b) {
    const Word both = __builtin_bit_cast(Word, a) | __builtin_bit_cast(Word, b);  // of equals: itself, and -0 of +0, -0
    const Accumulator smaller = ((a < b) | (a != a)) ? a : b;                     // b is NaN: not a < b, so b
    return a == b ? __builtin_bit_cast(Accumulator, both) : smaller;
  }
  TUTTI_INLINE static Accumulator max(Accumulator a, Accumulator b) {
    const Word both = __builtin_bit_cast(Word, a) & __builtin_bit_cast(Word, b);  // of equals: itself, and +0 of +0, -0
    const Accumulator larger = ((a > b) | (a != a)) ? a : b;
    return a == b ? __builtin_bit_cast(Accumulator, both) : larger;
  }

  TUTTI_INLINE static Accumulator divided(Accumulator a, int ranks) { return a / static_cast<Element>(ranks); }
};

template <int bytes>
struct Arithmetic<float, bytes> : Floats<float, std::uint32_t, bytes> {};
template <int bytes>
struct Arithmetic<double, bytes> : Floats<double, std::uint64_t, bytes> {};

}  // namespace tutti::TUTTI_ISA
