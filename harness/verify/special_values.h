// SPDX-License-Identifier: Apache-2.0
// Inputs of special values: NaN, infinities, zeros of both signs, subnormals, the largest values and what overflows.
//
// A reduction of them has one result in whatever order and grouping ranks are added, by the rules of impl/collective,
// but for the bits of a NaN. In each element at most two ranks, drawn anew from element to element, have a value that
// counts. All others have one that changes nothing wherever it is added, also where a scan adds some of the ranks only.
// (min and max need no such care: all ranks draw.) Left out is what the rules leave to the order:
// - avg of 8 and 16 bits: what overflows or is rounded. One MOVE divides before it rounds, while ranks that add in turn
//   round before. Of f8e5m2 infinities are left out too: a first addition makes them 57344.
// - f8e5m2: infinity less infinity and infinity times 0, for the same reason. f8e4m3 has no infinity.
//
// What is moved and not reduced is any bits, and every second element one of the special values: signalling NaNs too.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "harness/verify/accumulation.h"
#include "harness/verify/input_values.h"

namespace tutti::harness::verify {

/// Special values of a float.
template <class T>
struct Special {
  using Code = typename Format<T>::Code;
  static constexpr int kMantissa = Format<T>::kMantissaBits;
  static constexpr bool kSaturates = sizeof(T) == 1;
  static constexpr bool kHasInfinity = !std::is_same_v<T, Float8E4M3>;
  /// Whether a sum of several ranks is rounded only as T is.
  static constexpr bool kIsWide = std::is_floating_point_v<T>;
  static constexpr Code kTop = static_cast<Code>(((Code{1} << Format<T>::kExponentBits) - 1U) << kMantissa);
  static constexpr Code kLargest = static_cast<Code>(kHasInfinity ? kTop - 1U : 0x7eU);

  TUTTI_HOST_DEVICE static T of(std::uint64_t code) { return __builtin_bit_cast(T, static_cast<Code>(code)); }
  TUTTI_HOST_DEVICE static T zero() { return of(0); }
  TUTTI_HOST_DEVICE static T infinity() { return of(kTop); }
  /// Negative: never the poison of an output, nor half of it.
  TUTTI_HOST_DEVICE static T nan() {
    return negative(of(kHasInfinity ? kTop | Code{1} << (kMantissa - 1) | 1U : 0x7fU));
  }
  TUTTI_HOST_DEVICE static T signalling_nan() { return negative(of(kHasInfinity ? kTop | 1U : 0x7fU)); }
  TUTTI_HOST_DEVICE static T largest() { return of(kLargest); }
  /// Half of the distance from the largest value to the next lower one, and the value before that.
  TUTTI_HOST_DEVICE static T half_step() { return of(half_step_code()); }
  TUTTI_HOST_DEVICE static T below_half_step() { return of(half_step_code() - 1); }
  TUTTI_HOST_DEVICE static T least() { return of(1); }  ///< subnormal
  TUTTI_HOST_DEVICE static T twice_the_least() { return of(2); }
  TUTTI_HOST_DEVICE static T largest_subnormal() { return of((std::uint64_t{1} << kMantissa) - 1); }
  TUTTI_HOST_DEVICE static T least_normal() { return of(std::uint64_t{1} << kMantissa); }
  TUTTI_HOST_DEVICE static T power_of_two(int exponent) {
    return of(static_cast<std::uint64_t>(bias_of<T>() + exponent) << kMantissa);
  }
  TUTTI_HOST_DEVICE static T one() { return power_of_two(0); }
  TUTTI_HOST_DEVICE static T negative(T value) {
    return __builtin_bit_cast(T, static_cast<Code>(__builtin_bit_cast(Code, value) ^ (Code{1} << (8 * sizeof(T) - 1))));
  }

 private:
  TUTTI_HOST_DEVICE static constexpr std::uint64_t half_step_code() {
    return static_cast<std::uint64_t>((kLargest >> kMantissa) - kMantissa - 1) << kMantissa;
  }
};

/// What the ranks have in one element: two of them something, the others what changes nothing.
template <class T>
struct SpecialElement {
  T first, second, rest;
};

template <class T>
std::vector<SpecialElement<T>> special_sums(Op op) {
  using S = Special<T>;
  const T zero = S::zero(), minus_zero = S::negative(zero), one = S::one(), infinity = S::infinity();
  const auto minus = [](T value) { return S::negative(value); };
  std::vector<SpecialElement<T>> columns{{minus_zero, minus_zero, minus_zero},
                                         {zero, minus_zero, minus_zero},
                                         {S::nan(), one, zero},
                                         {S::signalling_nan(), minus(one), zero},
                                         {S::least(), S::twice_the_least(), zero},
                                         {S::largest_subnormal(), S::least(), zero},
                                         {S::least_normal(), minus(S::least()), zero},
                                         {S::least(), minus(S::least()), zero}};
  const auto add = [&](std::initializer_list<SpecialElement<T>> more) { columns.insert(columns.end(), more); };
  if (S::kHasInfinity && (op != Op::avg || !S::kSaturates)) {
    add({{infinity, one, zero},
         {minus(infinity), minus(one), zero},
         {infinity, infinity, zero},
         {infinity, S::nan(), zero}});
  }
  if (!S::kSaturates) add({{infinity, minus(infinity), zero}});
  if (op != Op::avg || S::kIsWide) {
    add({{S::largest(), S::largest(), zero},
         {minus(S::largest()), minus(S::largest()), zero},
         {S::largest(), S::half_step(), zero},
         {minus(S::largest()), minus(S::half_step()), zero},
         {S::largest(), S::below_half_step(), zero}});
  }
  return columns;
}

template <class T>
std::vector<SpecialElement<T>> special_products() {
  using S = Special<T>;
  const T zero = S::zero(), one = S::one(), two = S::power_of_two(1), half = S::power_of_two(-1);
  const auto minus = [](T value) { return S::negative(value); };
  std::vector<SpecialElement<T>> columns{{S::nan(), one, one},
                                         {S::signalling_nan(), minus(one), one},
                                         {minus(zero), one, one},
                                         {minus(zero), minus(one), minus(one)},
                                         {S::largest(), two, one},
                                         {S::largest(), minus(two), minus(one)},
                                         {S::largest(), one, minus(one)},
                                         {S::least_normal(), half, one},
                                         {S::least(), half, one},
                                         {minus(S::least()), half, one},
                                         {S::largest_subnormal(), minus(one), one}};
  if (S::kHasInfinity)
    columns.insert(columns.end(), {{S::infinity(), two, minus(one)}, {S::infinity(), minus(two), one}});
  if (!S::kSaturates) columns.push_back({zero, S::infinity(), one});
  return columns;
}

/// Every special value but NaN, with both signs.
template <class T>
std::vector<T> special_numbers() {
  using S = Special<T>;
  std::vector<T> values{S::zero(),         S::one(),     S::least(),        S::largest_subnormal(),
                        S::least_normal(), S::largest(), S::power_of_two(1)};
  if (S::kHasInfinity) values.push_back(S::infinity());
  const std::size_t positive = values.size();
  for (std::size_t i = 0; i < positive; ++i) values.push_back(S::negative(values[i]));
  return values;
}

/// What times this rank's factor is `value`, or `value` where that cannot be.
template <class T>
TUTTI_HOST_DEVICE T before_special_factor(T value, int factor) {
  using A = Accumulation<T>;
  using Code = typename Format<T>::Code;
  const T divided = A::store(A::load(value) / static_cast<typename A::Type>(factor));
  const T back = scaled(divided, factor);
  return __builtin_bit_cast(Code, back) == __builtin_bit_cast(Code, value) ? divided : value;
}

/// The special values of an op: a plain table, which a device can have a copy of.
template <class T>
struct SpecialTable {
  static constexpr std::uint32_t kMostColumns = 20;
  static constexpr std::uint32_t kMostNumbers = 16;
  Op op;
  std::uint32_t columns;  ///< of sum, avg, premul_sum and prod; 0 for other ops
  std::uint32_t numbers;
  SpecialElement<T> column[kMostColumns];
  T number[kMostNumbers];
};

template <class T>
[[nodiscard]] SpecialTable<T> special_table(Op op) {
  std::vector<SpecialElement<T>> columns;
  if (combining(op) == Op::sum) columns = special_sums<T>(op);
  if (op == Op::prod) columns = special_products<T>();
  const std::vector<T> numbers = special_numbers<T>();
  SpecialTable<T> table{};
  TUTTI_ASSERT(columns.size() <= table.kMostColumns && numbers.size() <= table.kMostNumbers,
               "{} columns and {} numbers", columns.size(), numbers.size());
  table.op = op;
  for (const SpecialElement<T>& column : columns) table.column[table.columns++] = column;
  for (const T number : numbers) table.number[table.numbers++] = number;
  return table;
}

/// A number below `many`, from the upper half of a hash.
TUTTI_HOST_DEVICE inline std::uint32_t chosen(std::uint32_t h, std::uint32_t many) {
  return ((h >> 16U) * many) >> 16U;
}
template <class T>
TUTTI_HOST_DEVICE T special_number(std::uint32_t h, const SpecialTable<T>& table) {
  return table.number[chosen(h, table.numbers)];
}

/// Of min and max: in one element of eight a NaN of one rank, or of two; in another zeros only.
template <class T>
TUTTI_HOST_DEVICE T special_extreme(std::uint32_t own, const Role& role, const SpecialTable<T>& table) {
  using S = Special<T>;
  constexpr std::uint32_t kKinds = 8;
  const std::uint32_t kind = role.common % kKinds;
  if (kind == 0 && role.place < 2) return role.place == 0 ? S::nan() : special_number(own, table);
  if (kind == 1 && role.place < 2) return role.place == 0 ? S::nan() : S::signalling_nan();
  if (kind == 2) return own % 2 == 0 ? S::zero() : S::negative(S::zero());
  return special_number(own, table);
}

/// What is moved.
template <class T>
TUTTI_HOST_DEVICE T special_bits(std::uint32_t own, const SpecialTable<T>& table) {
  using S = Special<T>;
  constexpr std::uint32_t kKinds = 8;
  const T nan = own >> 31U == 0 ? S::nan() : S::negative(S::nan());
  const T signalling = own >> 31U == 0 ? S::signalling_nan() : S::negative(S::signalling_nan());
  if (own % kKinds == 0) return nan;
  if (own % kKinds == 1) return signalling;
  return own % kKinds < kKinds / 2 ? special_number(own, table) : S::of(widened<typename S::Code>(own * 0x85ebca6bU));
}

/// Element `index` of the special values of one input.
template <class T>
TUTTI_HOST_DEVICE T special_value(std::uint32_t index, const Stream& stream, const SpecialTable<T>& table) {
  const std::uint32_t own = hash(index, stream.own);
  if (table.op == Op::none) return special_bits(own, table);
  const Role role = role_of(index, own, stream);
  if (table.columns == 0) return special_extreme(own, role, table);
  const SpecialElement<T>& column = table.column[chosen(role.common << 16U, table.columns)];
  const T value = role.place == 0 ? column.first : role.place == 1 ? column.second : column.rest;
  return table.op == Op::premul_sum ? before_special_factor(value, factor_of(static_cast<int>(stream.rank))) : value;
}

}  // namespace tutti::harness::verify
