// SPDX-License-Identifier: Apache-2.0
// Two levels within one host: ranks that share a cache, and caches. A line that crosses from one cache to another takes
// several times as long as one that stays. So ranks of a cache combine what they have before it crosses, and what has
// crossed is read by one of them.
//
// Rank r belongs to cache r / L, where L is Problem::ranks_per_cache. The last cache has fewer ranks where L does not
// divide P. Where L is not told, it is about the square root of P (cache_width).
//
// all_gather, reduce_scatter and nested_two_shot keep a unit for each cache in scratch, beside mirrors of a block for
// each rank. So they fit on up to 2048 ranks of one host.
//
// Sets of leaders and of columns hold the rank itself: without it they would be two sets.
#pragma once

#include <algorithm>

#include "impl/algorithms/algorithm.h"

namespace tutti::nested {

inline constexpr const char* kSource = "hierarchies within a node, as in Open MPI's XHC (Katevenis et al. 2022)";

/// Where a rank is; one rank of each cache leads it.
struct Place {
  int width;  ///< ranks of a cache, but the last
  int caches;
  int cache;
  int first;  ///< of its ranks
  int size;   ///< how many ranks it has

  Place(const Problem& problem, int rank)
      : width(cache_width(problem)),
        caches((problem.ranks + width - 1) / width),
        cache(rank / width),
        first(cache * width),
        size(std::min(width, problem.ranks - first)) {}

  /// The ranks of this cache before `rank`, and after it; either may be none.
  [[nodiscard]] RankSet before(int rank) const { return {.first = first, .stride = 1, .n = rank - first}; }
  [[nodiscard]] RankSet after(int rank) const { return {.first = rank + 1, .stride = 1, .n = first + size - 1 - rank}; }
  /// The first ranks of the caches before this one, and of those after it; either may be none.
  [[nodiscard]] RankSet firsts_before() const { return {.first = 0, .stride = width, .n = cache}; }
  [[nodiscard]] RankSet firsts_after() const {
    return {.first = first + width, .stride = width, .n = caches - 1 - cache};
  }
  /// The first ranks of all caches.
  [[nodiscard]] RankSet firsts() const { return {.first = 0, .stride = width, .n = caches}; }
  /// Whether another cache has several of the `ranks` ranks: all but the last one have as many as the width.
  [[nodiscard]] bool others_share(int ranks) const {
    return width > 1 && (caches > 2 || (caches == 2 && (cache == 1 || ranks > width + 1)));
  }
};

/// The rank that leads the cache of a place where there is a root: the root, or else the cache's first rank.
[[nodiscard]] inline int leader_of(const Problem& problem, const Place& place) {
  return place.cache == problem.root / place.width ? problem.root : place.first;
}

/// A place where all caches have equally many ranks: the most that divide P, up to the width.
struct EvenPlace {
  int width;
  int caches;
  int cache;
  int local;  ///< in its cache

  EvenPlace(const Problem& problem, int rank)
      : width(even_cache_width(problem)), caches(problem.ranks / width), cache(rank / width), local(rank % width) {}

  /// All ranks of this cache.
  [[nodiscard]] RankSet neighbours() const { return {.first = cache * width, .stride = 1, .n = width}; }
  /// The ranks of this place in all caches.
  [[nodiscard]] RankSet column() const { return {.first = local, .stride = width, .n = caches}; }
  /// The rank of this place in another cache.
  [[nodiscard]] int in(int other_cache) const { return other_cache * width + local; }
  /// The blocks of the column of rank t, as what is exposed to it: with 1 more per target.
  [[nodiscard]] UnitSet blocks() const { return {.start = 0, .length = 1, .stride = width, .repeat = caches}; }
  /// A SIGNAL and a WAIT of the whole cache, of which there are none where a rank has one for itself.
  [[nodiscard]] int flags_around() const { return width > 1 ? 2 : 0; }
};

/// The SIGNAL of a set or its WAIT: step `index` of the two.
[[nodiscard]] inline Step flag(int index, const RankSet& set, int phase, const Exposure& read = {},
                               const Exposure& write = {}) {
  return index == 0 ? signal(set, phase, read, write) : wait(set, phase);
}

}  // namespace tutti::nested
