// SPDX-License-Identifier: Apache-2.0
// What premul_sum does before it adds: every element times this rank's factor.
#pragma once

#include <array>
#include <cstddef>

#include "impl/types/dtype.h"

namespace tutti {

/// One element of any dtype.
using Factor = std::array<std::byte, 8>;

/// destination[i] <- source[i] * factor, rounded to the dtype: integers wrap, half, bfloat16 and the floats of 8 bits
/// are multiplied in float and rounded to nearest even once.
/// Shapes: `bytes` bytes each, any alignment; destination and source are disjoint or equal.
using Scale = void (*)(std::byte* destination, const std::byte* source, std::size_t bytes, const Factor& factor);

[[nodiscard]] Scale scale_for(Dtype dtype);

}  // namespace tutti
