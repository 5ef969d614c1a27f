// SPDX-License-Identifier: Apache-2.0
// Vectors of `bytes` bytes of any element, for the text that is compiled once per instruction set.
//
// Everything of that text lives in a namespace named by TUTTI_ISA and is forced inline. It calls no inline function of
// another header, not even std::bit_cast. The linker would keep one of the copies for all, and a CPU without AVX-512
// would run the wrong one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

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
/// load, store, sum, prod, min, max, divided. `bytes` is a power of two, from one element to a register.
template <class T, int bytes>
struct Arithmetic;

}  // namespace tutti::TUTTI_ISA
