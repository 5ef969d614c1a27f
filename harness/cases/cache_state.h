// SPDX-License-Identifier: Apache-2.0
// Where the buffers are when an operation begins: the value of --cache. Apart from sweep.h, so that measuring need not
// know what a sweep is.
#pragma once

#include <cstdint>

#include "harness/floors.h"

namespace tutti::harness::cases {

enum class CacheState : std::uint8_t {
  hot,     ///< where the operation before left them
  cold,    ///< in memory: every line of them is flushed from all caches before each call
  rotate,  ///< in memory: each call takes the next of several sets of them (harness/measure/rotation.h)
};

}  // namespace tutti::harness::cases
