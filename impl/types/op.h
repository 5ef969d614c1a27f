// SPDX-License-Identifier: Apache-2.0
// The reduction table. An op's arithmetic is in impl/reduce/arithmetic.h; which dtypes it exists for is said here.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "impl/types/dtype.h"
#include "impl/types/status.h"

namespace tutti {

// X(enumerator, name as users write it)
#define TUTTI_OPS(X) \
  X(sum, "sum")      \
  X(max, "max")      \
  X(avg, "avg")

/// `none` stands where a collective does not reduce; it is not a row of the table and cannot be asked for by name.
enum class Op : std::uint8_t {
#define TUTTI_ROW(id, name) id,
  TUTTI_OPS(TUTTI_ROW)
#undef TUTTI_ROW
      none,
};

[[nodiscard]] std::string_view to_string(Op op);
[[nodiscard]] const std::vector<Op>& all_ops();

/// Errors: invalid_argument naming the value, the nearest right name and all names.
[[nodiscard]] Result<Op> parse_op(std::string_view name);

}  // namespace tutti
