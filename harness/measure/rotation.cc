// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/rotation.h"

#include <algorithm>

namespace tutti::harness::measure {

Rotation rotation_of(const Cell& cell, const LastLevelCache& cache) {
  const int runners = cell.ranks_as->is_on_device ? cell.ranks : cell.ranks_as->runners(cell.ranks);
  const std::int64_t wanted = kCacheTimes * cache.bytes / std::min(runners, cache.cores);
  const std::int64_t buffers = cell.is_in_place ? 1 : 2;
  const std::int64_t set =
      std::max<std::int64_t>(1, largest_buffer_bytes(cell) * buffers * ((cell.ranks + runners - 1) / runners));
  Rotation rotation;
  rotation.sets = static_cast<int>(std::clamp<std::int64_t>((wanted + set - 1) / set, kLeastSets, kMostSets));
  rotation.filler_bytes = std::max<std::int64_t>(0, wanted - rotation.sets * set);
  return rotation;
}

Rotation rotation_of(const Cell& cell, CacheState state) {
  if (state != CacheState::rotate) return {};
  static const LastLevelCache cache = last_level_cache();
  return rotation_of(cell, cache);
}

}  // namespace tutti::harness::measure
