// SPDX-License-Identifier: Apache-2.0
// Which cores a rank is bound to: the value of --bind. Apart from sweep.h, so that the launcher need not know what a
// sweep is.
#pragma once

#include <cstdint>

#include "harness/floors.h"

namespace tutti::harness::cases {

enum class Bind : std::uint8_t {
  core,  ///< rank r to the r-th allowed core
  numa,  ///< ranks in equal shares, in their order, to the allowed cores of each NUMA node
  none,  ///< every rank to all allowed cores
};

}  // namespace tutti::harness::cases
