// SPDX-License-Identifier: Apache-2.0
// Where numbers are drawn, they are the same in every run, on every machine and with every library.
#pragma once

#include <cstdint>

#include "impl/types/host_device.h"

namespace tutti {

/// What scramble adds first: scramble(x), scramble(x + kScrambleStep), ... are the numbers of splitmix64 from x on.
inline constexpr std::uint64_t kScrambleStep = 0x9e3779b97f4a7c15U;

/// A fixed scramble of 64 bits: one number of splitmix64, the generator of Steele, Lea & Flood (OOPSLA 2014).
[[nodiscard]] TUTTI_HOST_DEVICE constexpr std::uint64_t scramble(std::uint64_t x) {
  x += kScrambleStep;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

}  // namespace tutti
