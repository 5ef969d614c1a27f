// SPDX-License-Identifier: Apache-2.0
// What a reduction must give, element by element, written plainly: from the definition of the numbers, left to right,
// without vectors and without the conversions that are tested.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "impl/types/dtype.h"
#include "impl/types/op.h"
#include "suites/unit/impl/types/reference_float.h"

namespace tutti {

/// a op b of numbers without NaN and without zeros of both signs, where avg adds.
template <class Number>
Number reference_combined(Op op, Number a, Number b) {
  switch (op) {
    case Op::sum:
    case Op::avg:
    case Op::premul_sum:
      return a + b;
    case Op::prod:
      return a * b;
    case Op::min:
      return std::min(a, b);
    case Op::max:
      return std::max(a, b);
    default:
      break;
  }
  if constexpr (std::is_integral_v<Number>) {
    if (op == Op::band) return a & b;
    if (op == Op::bor) return a | b;
    if (op == Op::bxor) return a ^ b;
  }
  return {};
}

/// Any byte but 0 is true.
inline Boolean reference_truth(Op op, const std::vector<Boolean>& column) {
  const bool is_every = op == Op::min || op == Op::band;
  const auto is_true = [](Boolean value) { return value != 0; };
  return (is_every ? std::ranges::all_of(column, is_true) : std::ranges::any_of(column, is_true)) ? 1 : 0;
}

template <class T>
T reference_reduced(Op op, bool divides, const std::vector<T>& column) {
  if constexpr (std::is_same_v<T, Boolean>) return reference_truth(op, column);
  if (column.size() == 1 && !divides) return column[0];
  const auto ranks = static_cast<int>(column.size());
  if constexpr (std::is_integral_v<T>) {
    // Sums and products modulo 2^64 are cut down to those modulo 2^32, 2^16 and 2^8.
    const bool wraps = combining(op) == Op::sum || op == Op::prod;
    T result = column[0];
    for (std::size_t s = 1; s < column.size(); ++s) {
      if (wraps) {
        result = static_cast<T>(
            reference_combined(op, static_cast<std::uint64_t>(result), static_cast<std::uint64_t>(column[s])));
      } else {
        result = static_cast<T>(reference_combined<std::common_type_t<T, int>>(op, result, column[s]));
      }
    }
    using Quotient = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    return divides ? static_cast<T>(static_cast<Quotient>(result) / static_cast<Quotient>(ranks)) : result;
  } else if constexpr (std::is_floating_point_v<T>) {
    T result = column[0];
    for (std::size_t s = 1; s < column.size(); ++s) result = reference_combined<T>(op, result, column[s]);
    return divides ? result / static_cast<T>(ranks) : result;
  } else {
    auto result = static_cast<float>(reference_value(column[0]));
    for (std::size_t s = 1; s < column.size(); ++s) {
      result = reference_combined<float>(op, result, static_cast<float>(reference_value(column[s])));
    }
    return reference_code<T>(divides ? result / static_cast<float>(ranks) : result);
  }
}

/// Any integer; of truth 0, 1 and other bytes. Of floats both signs, exponents -4 to 3, any mantissa: sums lose bits,
/// and in another order they lose others; products of many leave the range of the narrow ones.
template <class T>
T random_element(std::mt19937& random) {
  const std::uint64_t bits = std::uint64_t{random()} << 32U | random();
  if constexpr (std::is_same_v<T, Boolean>) {
    constexpr Boolean kBytes[] = {0, 0, 0, 1, 1, 2, 0x80, 0xff};
    return kBytes[bits % std::size(kBytes)];
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(bits);
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>((bits & 0x800fffffffffffffU) | std::uint64_t{1019 + (bits >> 52U) % 8} << 52U);
  } else {
    const std::uint64_t word = (bits & 0x807fffffU) | std::uint64_t{123 + (bits >> 32U) % 8} << 23U;
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(word));
    if constexpr (std::is_same_v<T, float>) {
      return value;
    } else {
      return reference_code<T>(value);
    }
  }
}

}  // namespace tutti
