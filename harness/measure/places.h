// SPDX-License-Identifier: Apache-2.0
// Places of an output: the cache lines of it that are poisoned before each call of a block, so that a call which leaves
// the last one's result where it was shows in whatever call is verified.
//
// All of a long output would take the place of others in the caches; so of long ones there are 64 lines, always others,
// one in each of so many equal parts. Whoever leaves out a share of an output is found out by each call that is
// verified with a probability that is as good as certain for all but the smallest share. An output that only its own
// rank writes has its lines where they were, afterwards. Not so one that peers write, each of whose lines is taken back
// from one of them: see block.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "harness/floors.h"

namespace tutti::harness::measure {

inline constexpr std::size_t kMostPlaces = 64;

/// Lines of an output of so many bytes that are poisoned at a time; 0 where it is empty.
[[nodiscard]] std::size_t places_in(std::size_t bytes);

struct Poisoning {
  std::uint64_t draw = 0;  ///< chooses the places
  std::uint64_t salt = 0;  ///< of the poison
  bool flushes = false;    ///< the lines are then in no cache (flush.h)
};
void poison_places(std::span<std::byte> output, const Poisoning& how);

}  // namespace tutti::harness::measure
