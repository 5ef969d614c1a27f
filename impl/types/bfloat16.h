// SPDX-License-Identifier: Apache-2.0
// bfloat16: the upper half of an IEEE float. GCC 12 has no __bf16, so it is 16 bits and two conversions. All arithmetic
// is done in float and rounded to nearest even once, on the store.
#pragma once

#include <cstdint>

#include "impl/types/host_device.h"

namespace tutti {

struct BFloat16 {
  std::uint16_t bits;

  [[nodiscard]] TUTTI_HOST_DEVICE static BFloat16 from_float(float value) {
    const std::uint32_t word = __builtin_bit_cast(std::uint32_t, value);
    const bool is_nan = (word & 0x7fffffffU) > 0x7f800000U;
    const std::uint32_t rounded = word + 0x7fffU + ((word >> 16U) & 1U);
    return {static_cast<std::uint16_t>(is_nan ? ((word >> 16U) | 0x40U) : (rounded >> 16U))};
  }
  [[nodiscard]] TUTTI_HOST_DEVICE float to_float() const {
    return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16U);
  }
};
static_assert(sizeof(BFloat16) == 2);

}  // namespace tutti
