// SPDX-License-Identifier: Apache-2.0
// The caches of this machine, as far as measuring needs them.
#pragma once

#include <cstdint>

#include "harness/floors.h"

namespace tutti::harness::machine {

/// Of this machine, as the first allowed core sees it.
struct LastLevelCache {
  std::int64_t bytes = 0;  ///< 0: the machine does not tell
  int cores = 1;           ///< that share it
};
[[nodiscard]] LastLevelCache last_level_cache();

}  // namespace tutti::harness::machine
