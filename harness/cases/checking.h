// SPDX-License-Identifier: Apache-2.0
// Which results of a measurement are verified: the value of --check. Apart from sweep.h, so that measuring need not
// know what a sweep is.
#pragma once

#include <cstdint>

namespace tutti::harness {

enum class Checking : std::uint8_t {
  every,   ///< of every sample, each on data of its own: what was cached of the buffers is gone each time
  sample,  ///< of one call in each block, which cannot be told from the others beforehand
  last,    ///< of one call after the last block
  none,    ///< the verdict is then unchecked
};

}  // namespace tutti::harness
