// SPDX-License-Identifier: Apache-2.0
// The oracle's arithmetic, apart from the collectives' own (impl/reduce), so that one error cannot hide in both:
// integers wrap without undefined behaviour, everything else is added in float, where the inputs' sums are exact.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "impl/types/bfloat16.h"
#include "impl/types/op.h"

namespace tutti::harness {

/// How values of T are loaded, totalled and stored; `divided` is avg's last step.
template <class T>
struct Accumulation {
  using Type = float;
  static float load(T value) { return value; }
  static T store(float total) { return total; }
  static T divided(float total, int ranks) { return total / static_cast<float>(ranks); }
};
template <>
struct Accumulation<BFloat16> {
  using Type = float;
  static float load(BFloat16 value) { return value.to_float(); }
  static BFloat16 store(float total) { return BFloat16::from_float(total); }
  static BFloat16 divided(float total, int ranks) { return BFloat16::from_float(total / static_cast<float>(ranks)); }
};
template <>
struct Accumulation<std::int32_t> {
  using Type = std::uint32_t;
  static std::uint32_t load(std::int32_t value) { return static_cast<std::uint32_t>(value); }
  static std::int32_t store(std::uint32_t total) { return static_cast<std::int32_t>(total); }
  static std::int32_t divided(std::uint32_t total, int ranks) { return store(total) / ranks; }
};

/// total op value, where avg adds.
template <class T>
typename Accumulation<T>::Type combine(typename Accumulation<T>::Type total, T value, Op op) {
  using A = Accumulation<T>;
  if (op != Op::max) return total + A::load(value);
  if constexpr (std::is_integral_v<T>) {
    return A::load(std::max(A::store(total), value));
  } else {
    return std::max(total, A::load(value));
  }
}

/// The total as the output holds it.
template <class T>
T finish(typename Accumulation<T>::Type total, Op op, int ranks) {
  return op == Op::avg ? Accumulation<T>::divided(total, ranks) : Accumulation<T>::store(total);
}

}  // namespace tutti::harness
