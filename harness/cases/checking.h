// SPDX-License-Identifier: Apache-2.0
// Which results of a measurement are verified: the value of --check. Apart from sweep.h, so that measuring need not
// know what a sweep is.
#pragma once

#include <cstdint>

#include "harness/floors.h"

namespace tutti::harness::cases {

enum class Checking : std::uint8_t {
  every,   ///< of every sample, each on data of its own: what was cached of the buffers is gone each time
  sample,  ///< in each block of the last timed one and one that is drawn, and of one more call on other data
  last,    ///< of one call on other data after the last block
  none,    ///< the verdict is then unchecked
};

}  // namespace tutti::harness::cases
