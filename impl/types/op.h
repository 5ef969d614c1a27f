// SPDX-License-Identifier: Apache-2.0
// The reduction table: which ops there are, and for which dtypes. Their arithmetic is in impl/reduce/arithmetic.h.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

#include "impl/types/dtype.h"
#include "impl/types/host_device.h"
#include "impl/types/status.h"

namespace tutti {

/// Which dtypes an op exists for.
enum class OpDomain : std::uint8_t { numbers, integers };

// X(enumerator, name as users write it, domain)
#define TUTTI_OPS(X)        \
  X(sum, "sum", numbers)    \
  X(prod, "prod", numbers)  \
  X(min, "min", numbers)    \
  X(max, "max", numbers)    \
  X(avg, "avg", numbers)    \
  X(band, "band", integers) \
  X(bor, "bor", integers)   \
  X(bxor, "bxor", integers) \
  X(premul_sum, "premul_sum", numbers)

/// `none` stands where a collective does not reduce; it is not a row of the table and cannot be asked for by name.
enum class Op : std::uint8_t {
#define TUTTI_ROW(id, name, domain) id,
  TUTTI_OPS(TUTTI_ROW)
#undef TUTTI_ROW
      none,
};

[[nodiscard]] TUTTI_HOST_DEVICE constexpr OpDomain domain_of(Op op) {
  switch (op) {
#define TUTTI_ROW(id, name, domain) \
  case Op::id:                      \
    return OpDomain::domain;
    TUTTI_OPS(TUTTI_ROW)
#undef TUTTI_ROW
    case Op::none:
      return OpDomain::numbers;
  }
  return OpDomain::numbers;
}

/// Whether truth values have the op: sum, max and bor are the logical or, min and band the logical and.
[[nodiscard]] TUTTI_HOST_DEVICE constexpr bool is_logical(Op op) {
  return op == Op::sum || op == Op::min || op == Op::max || op == Op::band || op == Op::bor;
}

/// Whether the pair can be reduced; every dtype has Op::none. T: a C++ type of the dtype table.
template <class T>
[[nodiscard]] TUTTI_HOST_DEVICE constexpr bool op_exists_for(Op op) {
  if (std::is_same_v<T, Boolean>) return op == Op::none || is_logical(op);
  return domain_of(op) == OpDomain::numbers || std::is_integral_v<T>;
}
[[nodiscard]] TUTTI_HOST_DEVICE constexpr bool op_exists(Op op, Dtype dtype) {
  if (dtype == Dtype::boolean) return op_exists_for<Boolean>(op);
  return domain_of(op) == OpDomain::numbers || is_integer(dtype);
}

/// By what two elements are combined: avg is a sum that is divided at its end, premul_sum one of inputs that were each
/// multiplied by their rank's factor first.
[[nodiscard]] TUTTI_HOST_DEVICE constexpr Op combining(Op op) {
  return op == Op::avg || op == Op::premul_sum ? Op::sum : op;
}

[[nodiscard]] std::string_view to_string(Op op);
/// In the order of the table.
[[nodiscard]] const std::vector<Op>& all_ops();

/// Errors: invalid_argument naming the value, the nearest right name and all names.
[[nodiscard]] Result<Op> parse_op(std::string_view name);

}  // namespace tutti
