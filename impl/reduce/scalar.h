// SPDX-License-Identifier: Apache-2.0
// The arithmetic of a reduction element by element, on the host and on a GPU: the text of the kernels, with scalars for
// vectors, so the bits are theirs. Apart is the payload of a NaN where both operands are one, and of a NaN that a GPU
// makes.
//
// Compiled without contraction and fast arithmetic, as the kernels are: nvcc --fmad=false, GCC -ffp-contract=off where
// the CPU has a fused multiply-add. Otherwise `scale` and `combine` of float and double would be rounded once.
#pragma once

#include <type_traits>

#include "impl/reduce/arithmetic.h"
#include "impl/reduce/scale.h"
#include "impl/types/host_device.h"
#include "impl/types/op.h"

namespace tutti::scalar {

/// What a number of T is in registers: half, bfloat16 and the floats of 8 bits are float.
template <class T>
struct Registers {
  using Storage = T;
  using Accumulator = T;
  TUTTI_INLINE static Accumulator load(Storage stored) { return stored; }
  TUTTI_INLINE static Storage store(Accumulator value) { return value; }
};
template <>
struct Registers<Boolean> {
  using Storage = std::uint8_t;
  using Accumulator = std::uint8_t;
  TUTTI_INLINE static Accumulator load(Storage stored) { return stored == 0 ? 0 : 1; }
  TUTTI_INLINE static Storage store(Accumulator value) { return value; }
};
template <class T>
requires(std::is_class_v<T>) struct Registers<T> {
  using Storage = decltype(T::bits);
  using Accumulator = float;
  using Part = TUTTI_ISA::Part<T, sizeof(Accumulator)>;
  TUTTI_INLINE static Accumulator load(Storage stored) { return Part::load(stored, 0); }
  TUTTI_INLINE static Storage store(Accumulator value) { return static_cast<Storage>(Part::store(value, 0)); }
};

/// One element of a reduction: load every source's, combine from left to right, divide where the MOVE is the final one
/// of an avg, store. One source that is not divided is to be copied instead, by Op::none: loading and storing makes
/// other bits of a NaN, and of an infinity of f8e5m2. T is a C++ type of the dtype table. Requires: op_exists.
template <class T, Op op>
struct Elementwise : Registers<T> {
  static_assert(op_exists_for<T>(op), "operations on bits are of integers");
  using typename Registers<T>::Storage;      ///< in memory, with the size of T
  using typename Registers<T>::Accumulator;  ///< in registers
  using Number = std::conditional_t<std::is_same_v<T, Boolean>, Boolean, Accumulator>;
  using Arithmetic = TUTTI_ISA::Arithmetic<Number, sizeof(Accumulator)>;

  /// a op b, where avg and premul_sum add. `a` is what was combined before: of two NaNs min and max keep it.
  TUTTI_INLINE static Accumulator combine(Accumulator a, Accumulator b) {
    return TUTTI_ISA::combined<Arithmetic, op>(a, b);
  }
  /// avg's last step. Requires: ranks >= 1.
  TUTTI_INLINE static Accumulator divide(Accumulator total, int ranks) { return Arithmetic::divided(total, ranks); }
  /// What premul_sum adds for an element: itself times its rank's factor, as scale.h says.
  TUTTI_INLINE static Storage scale(Storage value, Storage factor) {
    if constexpr (std::is_class_v<T>) {
      return premultiplied(T{value}, T{factor}).bits;
    } else {
      return premultiplied(value, factor);
    }
  }
};

/// A copy: every bit is kept.
template <class T>
struct Elementwise<T, Op::none> {
  using Storage = typename Registers<T>::Storage;
  using Accumulator = Storage;
  TUTTI_INLINE static Accumulator load(Storage stored) { return stored; }
  TUTTI_INLINE static Storage store(Accumulator value) { return value; }
};

}  // namespace tutti::scalar
