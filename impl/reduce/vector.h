// SPDX-License-Identifier: Apache-2.0
// Vectors of `bytes` bytes of any element, for the text that is compiled once per instruction set.
//
// Everything of that text lives in a namespace named by TUTTI_ISA and is forced inline. It calls no inline function of
// another header, not even std::bit_cast. The linker would keep one of the copies for all, and a CPU without AVX-512
// would run the wrong one.
//
// A vector of one element is that element, so the same text is the arithmetic of scalars. A GPU compiles it too
// (scalar.h), and has no other vectors. What is shorter than int is computed as int: sums and the like are cast back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "impl/types/host_device.h"

/// Before a loop of at most four turns, all of which are unrolled.
#ifdef __CUDACC__
#define TUTTI_UNROLL _Pragma("unroll")
#else
#define TUTTI_UNROLL _Pragma("GCC unroll 4")
#endif

#ifndef TUTTI_ISA
#define TUTTI_ISA isa_scalar
#endif

namespace tutti::TUTTI_ISA {

template <class Element, int bytes>
struct VectorOf {
#ifndef __CUDACC__
  typedef Element type __attribute__((vector_size(bytes)));
#endif
};
template <class Element, int bytes>
requires(bytes == sizeof(Element)) struct VectorOf<Element, bytes> {
  using type = Element;
};
template <class Element, int bytes>
using Vector = typename VectorOf<Element, bytes>::type;

/// What every Arithmetic<T, bytes> has: the types Storage (in memory) and Accumulator (in registers) and the functions
/// load, store, sum, prod, min, max, divided. `bytes` is a power of two, from one element to a register.
template <class T, int bytes>
struct Arithmetic;

}  // namespace tutti::TUTTI_ISA
