// SPDX-License-Identifier: Apache-2.0
// Places of an output: the cache lines of it that are poisoned before each call of a block. A call that leaves the last
// one's result where it was then shows in any call that is verified.
//
// Poisoning all of a long output would take the place of others in the caches. So a long output has kMostPlaces places,
// one in each of as many equal parts, and always other lines. Each verified call finds out a system that leaves out a
// share of an output, as good as certainly for all but the smallest share.
//
// An output that only its own rank writes has its lines where they were, afterwards. An output that peers write has
// not: each of its lines is taken back from one of them (block.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "harness/verify/memory.h"

namespace tutti::harness::measure {

inline constexpr std::size_t kMostPlaces = 64;

/// Lines of an output of `bytes` bytes that are poisoned at a time; 0 where it is empty.
[[nodiscard]] std::size_t places_in(std::size_t bytes);

struct Poisoning {
  std::uint64_t draw = 0;        ///< chooses the places
  std::uint64_t salt = 0;        ///< of the poison
  bool flushes = false;          ///< the lines are then in no cache (flush.h)
  Memory& kind = host_memory();  ///< of the output
};
void poison_places(std::span<std::byte> output, const Poisoning& how);

}  // namespace tutti::harness::measure
