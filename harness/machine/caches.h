// SPDX-License-Identifier: Apache-2.0
// The caches of this machine, as far as measuring needs them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/floors.h"
#include "harness/machine/machine.h"
#include "harness/machine/tree.h"

namespace tutti::harness::machine {

/// The caches of a core, as the kernel numbers them, below `root`: "/", or a folder that stands for it.
[[nodiscard]] std::vector<Cache> caches_of(const Tree& root, int core);

/// Of this machine, as the first allowed core sees it.
struct LastLevelCache {
  std::int64_t bytes = 0;  ///< 0: the machine does not tell
  int cores = 1;           ///< that share it
};
[[nodiscard]] LastLevelCache last_level_cache();

/// How many of `cores`, one after the other, share the last cache before another one's begin. All caches but the last
/// one have as many; what follows a core of a cache that came before (a second thread of a core) does not count. 0: one
/// cache, caches of one core, uneven ones, or the machine does not tell.
[[nodiscard]] int cores_per_cache(const Tree& root, std::span<const int> cores);

}  // namespace tutti::harness::machine
