// SPDX-License-Identifier: Apache-2.0
// The dtype table: one row holds every fact about an element type, and `visit_dtype` is the only switch over dtypes in
// the project. Adding a dtype is one row here and its arithmetic in impl/reduce (integers.h, floats.h or
// narrow_floats.h). What `all` stands for are the twelve of NCCL and of its tests; the others are asked for by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "impl/types/bfloat16.h"
#include "impl/types/host_device.h"
#include "impl/types/narrow_float.h"
#include "impl/types/status.h"

namespace tutti {

/// A byte that is 0 or 1. On input any other byte is true as well. A type of its own, and an unsigned integer to C++:
/// `bool` would be undefined where the byte is another one.
using Boolean = char8_t;

// X(enumerator, C++ type, name as users write it)
#define TUTTI_DTYPES_OF_ALL(X)    \
  X(i8, std::int8_t, "int8")      \
  X(u8, std::uint8_t, "uint8")    \
  X(i32, std::int32_t, "int32")   \
  X(u32, std::uint32_t, "uint32") \
  X(i64, std::int64_t, "int64")   \
  X(u64, std::uint64_t, "uint64") \
  X(f16, Half, "half")            \
  X(f32, float, "float")          \
  X(f64, double, "double")        \
  X(bf16, BFloat16, "bfloat16")   \
  X(f8e4m3, Float8E4M3, "f8e4m3") \
  X(f8e5m2, Float8E5M2, "f8e5m2")

#define TUTTI_DTYPES_BY_NAME(X)   \
  X(i16, std::int16_t, "int16")   \
  X(u16, std::uint16_t, "uint16") \
  X(boolean, Boolean, "bool")

#define TUTTI_DTYPES(X)  \
  TUTTI_DTYPES_OF_ALL(X) \
  TUTTI_DTYPES_BY_NAME(X)

enum class Dtype : std::uint8_t {
#define TUTTI_ROW(id, type, name) id,
  TUTTI_DTYPES(TUTTI_ROW)
#undef TUTTI_ROW
};

/// Calls `f(std::type_identity<T>{})` with the element type of `dtype` and returns what it returns.
template <class F>
decltype(auto) visit_dtype(Dtype dtype, F&& f) {
  switch (dtype) {
#define TUTTI_ROW(id, type, name) \
  case Dtype::id:                 \
    return f(std::type_identity<type>{});
    TUTTI_DTYPES(TUTTI_ROW)
#undef TUTTI_ROW
  }
  TUTTI_ASSERT(false, "dtype {}", static_cast<int>(dtype));
}

/// Bytes of one element.
[[nodiscard]] TUTTI_HOST_DEVICE constexpr std::size_t size_of(Dtype dtype) {
  switch (dtype) {
#define TUTTI_ROW(id, type, name) \
  case Dtype::id:                 \
    return sizeof(type);
    TUTTI_DTYPES(TUTTI_ROW)
#undef TUTTI_ROW
  }
  return 0;
}

/// bool too.
[[nodiscard]] TUTTI_HOST_DEVICE constexpr bool is_integer(Dtype dtype) {
  switch (dtype) {
#define TUTTI_ROW(id, type, name) \
  case Dtype::id:                 \
    return std::is_integral_v<type>;
    TUTTI_DTYPES(TUTTI_ROW)
#undef TUTTI_ROW
  }
  return false;
}

[[nodiscard]] std::string_view to_string(Dtype dtype);
/// What `all` stands for, in the order of the table.
[[nodiscard]] const std::vector<Dtype>& all_dtypes();
/// Those and the ones that `all` leaves out, in the order of the table: at each enumerator's own number.
[[nodiscard]] const std::vector<Dtype>& known_dtypes();

/// Errors: invalid_argument naming the value, the nearest right name and all names.
[[nodiscard]] Result<Dtype> parse_dtype(std::string_view name);

}  // namespace tutti
