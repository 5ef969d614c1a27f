// SPDX-License-Identifier: Apache-2.0
// Rotation: sets of buffers that calls go through in turn (--cache rotate). Each call's buffers are then out of the
// caches without being flushed from them. Between two calls on a set all others are used, and together they have twice
// the last-level cache.
//
// There are at most kMostSets. Where their buffers are small, other memory, the filler, makes up for what is missing. A
// part of it is read before each call. What else a system has in memory (flags, slots, scratch) goes out of the caches
// too.
#pragma once

#include <cstdint>

#include "harness/cases/case.h"
#include "harness/cases/conditions.h"
#include "harness/machine/caches.h"

namespace tutti::harness::measure {

inline constexpr int kLeastSets = 2;  ///< buffers longer than the cache put each other out of it
inline constexpr int kMostSets = 16;
inline constexpr int kCacheTimes = 2;  ///< that the sets have the cache

struct Rotation {
  int sets = 1;
  std::int64_t filler_bytes = 0;  ///< read on each runner while its calls go through the sets once

  bool operator==(const Rotation&) const = default;
};
/// The same for all cases of a cell. The ranks that share a cache fill it together.
[[nodiscard]] Rotation rotation_of(const Cell& cell, const LastLevelCache& cache);
/// Of this machine's cache; one set where the calls do not rotate.
[[nodiscard]] Rotation rotation_of(const Cell& cell, CacheState state);

}  // namespace tutti::harness::measure
