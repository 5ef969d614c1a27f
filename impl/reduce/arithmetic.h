// SPDX-License-Identifier: Apache-2.0
// The arithmetic of a reduction: how each dtype is widened, combined, divided and stored. Written on vectors of `bytes`
// bytes of memory, so that one text serves every width from a whole register down to one element, in every instruction
// set.
//
//   dtype              accumulates in  sum, prod  min, max                      division (avg, at the final MOVE)
//   integers           their own type  wrap       of the type                   towards zero
//   bool               a byte: 0, 1    or            and, or                    there is none
//   float, double      their own type  IEEE       NaN propagates, -0 below +0   IEEE, by P
//   half, bfloat16     float           as float   as float                      as float; one rounding, on the store
//   f8e4m3, f8e5m2     float           as float   as float                      the same, saturating
//
// Adding a dtype is one row in impl/types/dtype.h and one `Arithmetic` in integers.h, floats.h or narrow_floats.h.
#pragma once

#include "impl/reduce/floats.h"
#include "impl/reduce/integers.h"
#include "impl/reduce/narrow_floats.h"
#include "impl/types/op.h"

namespace tutti::TUTTI_ISA {

/// `a op b`, as `combining` says.
template <class A, Op op_>
TUTTI_INLINE typename A::Accumulator combined(typename A::Accumulator a, typename A::Accumulator b) {
  constexpr Op op = combining(op_);
  if constexpr (op == Op::sum) {
    return A::sum(a, b);
  } else if constexpr (op == Op::prod) {
    return A::prod(a, b);
  } else if constexpr (op == Op::min) {
    return A::min(a, b);
  } else if constexpr (op == Op::max) {
    return A::max(a, b);
  } else if constexpr (op == Op::band) {
    return A::band(a, b);
  } else if constexpr (op == Op::bor) {
    return A::bor(a, b);
  } else {
    static_assert(op == Op::bxor, "this op has no arithmetic yet");
    return A::bxor(a, b);
  }
}

}  // namespace tutti::TUTTI_ISA
