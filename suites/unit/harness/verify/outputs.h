// SPDX-License-Identifier: Apache-2.0
// Outputs that tests damage before they are verified. They are right ones, and those of an all_reduce to which a rank
// has contributed not once but another number of times, by arithmetic of their own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "harness/verify/check.h"

namespace tutti::harness::verify {

inline std::vector<std::byte> right_output(const Operation& operation, int rank) {
  const std::size_t block_bytes = static_cast<std::size_t>(operation.count) * size_of(operation.dtype);
  const auto blocks = static_cast<std::size_t>(output_blocks(operation.problem, rank));
  std::vector<std::byte> bytes(blocks * block_bytes);
  for (std::size_t block = 0; block < blocks; ++block) {
    fill_expected(std::span(bytes).subspan(block * block_bytes, block_bytes), operation,
                  {.rank = rank, .block = static_cast<int>(block)});
  }
  return bytes;
}

inline std::vector<std::byte> input_bytes(const Operation& operation, int rank, std::size_t bytes) {
  std::vector<std::byte> values(bytes);
  fill_input(values, input_of(operation, rank));
  return values;
}

inline CheckResult verify(const Operation& operation, int rank, const std::vector<std::byte>& bytes) {
  Oracle oracle(operation);
  return verify_output(oracle, {.rank = rank, .bytes = bytes});
}

inline Operation all_reduce(Dtype dtype, Op op, Count count = 10000) {
  return {.problem = {.collective = Collective::all_reduce, .ranks = 5},
          .dtype = dtype,
          .op = op,
          .count = count,
          .salt = 8};
}
/// Of the same inputs as all_reduce.
inline Operation scan(Dtype dtype, Op op, Count count = 10000) {
  Operation operation = all_reduce(dtype, op, count);
  operation.problem.collective = Collective::scan;
  return operation;
}
inline Operation all_to_all(Count count = 5000) {
  return {.problem = {.collective = Collective::all_to_all, .ranks = 4}, .count = count, .salt = 8};
}
inline Operation broadcast(Count count = 5000) {
  return {.problem = {.collective = Collective::broadcast, .ranks = 4, .root = 2}, .count = count, .salt = 8};
}

/// What all_reduce gives where each of `suspects` contributes `weight` times, by arithmetic of these tests.
template <class T>
T weighted_element(const std::vector<T>& column, Op op, const std::vector<int>& suspects, int weight) {
  // Numbers in double, where the inputs' results are exact; integers and their bits modulo 2^64.
  using Wide = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;
  const auto wide = [](T value) {
    if constexpr (std::is_arithmetic_v<T>) {
      return static_cast<Wide>(value);
    } else {
      return static_cast<Wide>(value.to_float());
    }
  };
  const auto less = [&](Wide a, Wide b) {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(a) < static_cast<T>(b);
    return a < b;
  };
  std::vector<Wide> values;
  for (std::size_t rank = 0; rank < column.size(); ++rank) {
    const bool is_suspect = std::ranges::count(suspects, static_cast<int>(rank)) > 0;
    const int times = is_suspect ? weight : 1;
    const auto factor = static_cast<Wide>(op == Op::premul_sum ? factor_of(static_cast<int>(rank)) : 1);
    for (int i = 0; i < times; ++i) values.push_back(wide(column[rank]) * factor);
  }
  Wide total = values[0];
  for (std::size_t i = 1; i < values.size(); ++i) {
    const Wide value = values[i];
    if (combining(op) == Op::sum) total += value;
    if (op == Op::prod) total *= value;
    if (op == Op::min) total = less(value, total) ? value : total;
    if (op == Op::max) total = less(total, value) ? value : total;
    if constexpr (std::is_integral_v<T>) {
      if (op == Op::band) total &= value;
      if (op == Op::bor) total |= value;
      if (op == Op::bxor) total ^= value;
    }
  }
  const auto ranks = static_cast<int>(column.size());
  if constexpr (std::is_integral_v<T>) {
    const T wrapped = static_cast<T>(total);
    return op == Op::avg ? static_cast<T>(wrapped / static_cast<std::common_type_t<T, int>>(ranks)) : wrapped;
  } else if constexpr (std::is_same_v<T, double>) {
    return op == Op::avg ? total / ranks : total;
  } else {
    const auto sum = static_cast<float>(total);
    const float value = op == Op::avg ? sum / static_cast<float>(ranks) : sum;
    if constexpr (std::is_same_v<T, float>) {
      return value;
    } else {
      return T::from_float(value);
    }
  }
}

template <class T>
std::vector<std::byte> weighted_output(const Operation& operation, const std::vector<int>& suspects, int weight) {
  const auto n = static_cast<std::size_t>(operation.count);
  std::vector<std::vector<T>> inputs;
  for (int rank = 0; rank < operation.problem.ranks; ++rank) {
    inputs.emplace_back(n);
    fill_input(std::as_writable_bytes(std::span(inputs.back())), input_of(operation, rank));
  }
  std::vector<T> result(n);
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<T> column;
    for (const auto& input : inputs) column.push_back(input[i]);
    result[i] = weighted_element(column, operation.op, suspects, weight);
  }
  const auto bytes = std::as_bytes(std::span(result));
  return {bytes.begin(), bytes.end()};
}
inline std::vector<std::byte> weighted(const Operation& operation, const std::vector<int>& suspects, int weight) {
  return visit_dtype(operation.dtype,
                     [&]<class T>(std::type_identity<T>) { return weighted_output<T>(operation, suspects, weight); });
}

inline std::vector<Operation> every_all_reduce() {
  std::vector<Operation> operations;
  for (const Dtype dtype : all_dtypes()) {
    for (const Op op : all_ops()) {
      if (op_exists(op, dtype)) operations.push_back(all_reduce(dtype, op));
    }
  }
  return operations;
}
inline std::string name_of(const Operation& operation) {
  return fmt::format("{} {}", to_string(operation.dtype), to_string(operation.op));
}
/// Elements of few bits, and quotients of few, may be right by chance.
inline bool is_coarse(const Operation& operation) { return size_of(operation.dtype) == 1; }

}  // namespace tutti::harness::verify
