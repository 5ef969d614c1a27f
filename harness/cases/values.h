// SPDX-License-Identifier: Apache-2.0
// What inputs are made of: the value of --values. Apart from sweep.h, as checking.h is.
#pragma once

#include <cstdint>

#include "harness/floors.h"

namespace tutti::harness::cases {

enum class Values : std::uint8_t {
  exact,    ///< every order of reduction gives the same bits
  random,   ///< floats that are rounded: results are compared within a bound (harness/verify/rounding.h)
  special,  ///< floats: NaN, infinities, zeros, subnormals, what overflows; every order gives the same bits but of a
            ///< NaN
};

}  // namespace tutti::harness::cases
