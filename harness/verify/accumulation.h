// SPDX-License-Identifier: Apache-2.0
// The oracle's arithmetic, apart from the collectives' own (impl/reduce), so that one error cannot hide in both.
// Integers wrap without undefined behaviour. double is added in double. Everything else is added in float, where what
// the inputs add up or multiply to is exact.
#pragma once

#include <cstdint>
#include <type_traits>

#include "harness/floors.h"
#include "impl/types/dtype.h"
#include "impl/types/host_device.h"
#include "impl/types/op.h"

namespace tutti::harness::verify {

/// How values of T are loaded, totalled and stored; `divided` is avg's last step. Here: floats of 8 and 16 bits.
template <class T>
struct Accumulation {
  using Type = float;
  TUTTI_HOST_DEVICE static float load(T value) { return value.to_float(); }
  TUTTI_HOST_DEVICE static T store(float total) { return T::from_float(total); }
  TUTTI_HOST_DEVICE static T divided(float total, int ranks) {
    return T::from_float(total / static_cast<float>(ranks));
  }
};
template <class T>
requires(std::is_floating_point_v<T>) struct Accumulation<T> {
  using Type = T;
  TUTTI_HOST_DEVICE static T load(T value) { return value; }
  TUTTI_HOST_DEVICE static T store(T total) { return total; }
  TUTTI_HOST_DEVICE static T divided(T total, int ranks) { return total / static_cast<T>(ranks); }
};
template <class T>
requires(std::is_integral_v<T>) struct Accumulation<T> {
  using Type = std::make_unsigned_t<T>;
  TUTTI_HOST_DEVICE static Type load(T value) { return static_cast<Type>(value); }
  TUTTI_HOST_DEVICE static T store(Type total) { return static_cast<T>(total); }
  TUTTI_HOST_DEVICE static T divided(Type total, int ranks) {
    if constexpr (std::is_signed_v<T>) return static_cast<T>(static_cast<std::int64_t>(store(total)) / ranks);
    return static_cast<T>(static_cast<std::uint64_t>(total) / static_cast<std::uint64_t>(ranks));
  }
};

/// What is not 0 is true.
template <>
struct Accumulation<Boolean> {
  using Type = std::uint8_t;
  TUTTI_HOST_DEVICE static Type load(Boolean value) { return value == 0 ? 0 : 1; }
  TUTTI_HOST_DEVICE static Boolean store(Type total) { return total; }
  TUTTI_HOST_DEVICE static Boolean divided(Type total, int /*ranks*/) { return total; }
};

/// Calls `f(std::integral_constant<Op, op>{})`, so that a loop inside it is compiled for the op.
template <class F>
decltype(auto) visit_op(Op op, F&& f) {
  switch (op) {
#define TUTTI_ROW(id, name, domain) \
  case Op::id:                      \
    return f(std::integral_constant<Op, Op::id>{});
    TUTTI_OPS(TUTTI_ROW)
#undef TUTTI_ROW
    case Op::none:
      break;
  }
  TUTTI_ASSERT(false, "op {}", static_cast<int>(op));
}

/// Whether the sign is that of a negative number, also of a zero.
[[nodiscard]] TUTTI_HOST_DEVICE inline bool is_negative(float value) {
  return __builtin_bit_cast(std::uint32_t, value) >> 31U != 0;
}
[[nodiscard]] TUTTI_HOST_DEVICE inline bool is_negative(double value) {
  return __builtin_bit_cast(std::uint64_t, value) >> 63U != 0;
}

/// A NaN stays one, and -0 lies below +0.
template <Op op, class Float>
TUTTI_HOST_DEVICE Float extreme(Float a, Float b) {
  if (a != a || b != b) return a + b;
  if (a == b) return is_negative(a) == (op == Op::min) ? a : b;
  return (a < b) == (op == Op::min) ? a : b;
}

/// total op value, where avg and premul_sum add.
template <class T, Op op>
TUTTI_HOST_DEVICE typename Accumulation<T>::Type combine(typename Accumulation<T>::Type total, T value) {
  using A = Accumulation<T>;
  using Type = typename A::Type;
  const Type other = A::load(value);
  if constexpr (std::is_same_v<T, Boolean>) {
    if constexpr (op == Op::min || op == Op::band) return total == 0 ? total : other;
    return total == 0 ? other : total;
  } else if constexpr (combining(op) == Op::sum) {
    return static_cast<Type>(total + other);
  } else if constexpr (op == Op::prod) {
    if constexpr (std::is_integral_v<T>) return static_cast<Type>(std::uint64_t{total} * std::uint64_t{other});
    return static_cast<Type>(total * other);
  } else if constexpr (op == Op::min || op == Op::max) {
    // Of the type, not of its accumulator: integers may have a sign.
    if constexpr (std::is_integral_v<T>) {
      const T so_far = A::store(total);
      return A::load((value < so_far) == (op == Op::min) ? value : so_far);
    } else {
      return extreme<op>(total, other);
    }
  } else if constexpr (std::is_integral_v<T>) {
    if constexpr (op == Op::band) return static_cast<Type>(total & other);
    if constexpr (op == Op::bor) return static_cast<Type>(total | other);
    if constexpr (op == Op::bxor) return static_cast<Type>(total ^ other);
  } else {
    TUTTI_ASSERT(false, "{} of a float", to_string(op));
  }
}
template <class T>
typename Accumulation<T>::Type combine(typename Accumulation<T>::Type total, T value, Op op) {
  return visit_op(op, [&]<Op known>(std::integral_constant<Op, known>) { return combine<T, known>(total, value); });
}

/// `value` times `factor`, as one of the inputs that premul_sum adds.
template <class T>
TUTTI_HOST_DEVICE T scaled(T value, int factor) {
  using A = Accumulation<T>;
  using Type = typename A::Type;
  const Type loaded = A::load(value);
  const auto other = static_cast<Type>(factor);
  // Not as int, which a product of two words of 16 bits may exceed.
  if constexpr (std::is_integral_v<T>) return A::store(static_cast<Type>(std::uint64_t{loaded} * std::uint64_t{other}));
  return A::store(static_cast<Type>(loaded * other));
}

/// The total as the output holds it.
template <class T>
TUTTI_HOST_DEVICE T finish(typename Accumulation<T>::Type total, Op op, int ranks) {
  return op == Op::avg ? Accumulation<T>::divided(total, ranks) : Accumulation<T>::store(total);
}

}  // namespace tutti::harness::verify
