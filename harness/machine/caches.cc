// SPDX-License-Identifier: Apache-2.0
#include "harness/machine/caches.h"

#include <algorithm>

#include "harness/machine/machine.h"
#include "harness/machine/tree.h"

namespace tutti::harness::machine {

LastLevelCache last_level_cache() {
  LastLevelCache last;
  int level = 0;
  for (const Cache& cache : describe_machine().caches) {
    if (cache.level <= level || cache.type == "Instruction" || cache.bytes <= 0) continue;
    level = cache.level;
    last = {.bytes = cache.bytes, .cores = std::max(1, static_cast<int>(parse_cpu_list(cache.shared_cpus).size()))};
  }
  return last;
}

}  // namespace tutti::harness::machine
