// SPDX-License-Identifier: Apache-2.0
// What premul_sum does before it adds: every element times this rank's factor.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "impl/types/dtype.h"
#include "impl/types/host_device.h"

namespace tutti {

/// One element of any dtype.
using Factor = std::array<std::byte, 8>;

/// value * factor, rounded to the dtype: integers wrap, half, bfloat16 and the floats of 8 bits are multiplied in float
/// and rounded to nearest even once.
template <class T>
TUTTI_HOST_DEVICE T premultiplied(T value, T factor) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(value) * static_cast<std::uint64_t>(factor));
  } else if constexpr (std::is_floating_point_v<T>) {
    return value * factor;
  } else {
    return T::from_float(value.to_float() * factor.to_float());
  }
}

/// destination[i] <- premultiplied(source[i], factor).
/// Shapes: `bytes` bytes each, any alignment; destination and source are disjoint or equal.
using Scale = void (*)(std::byte* destination, const std::byte* source, std::size_t bytes, const Factor& factor);

[[nodiscard]] Scale scale_for(Dtype dtype);

}  // namespace tutti
