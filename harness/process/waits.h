// SPDX-License-Identifier: Apache-2.0
// How processes wait that are no ranks at work: in naps, or for a descriptor. Ranks poll (harness/measure/runner.h).
#pragma once

#include <chrono>
#include <functional>

#include "harness/floors.h"

namespace tutti::harness::process {

inline constexpr std::chrono::milliseconds kShortNap{2};
inline constexpr std::chrono::milliseconds kForever{-1};

/// Looks again and again, at once and then after each nap, whether `is_over`. False where it was not when `most` was
/// over; the last look is after that.
bool nap_until(std::chrono::nanoseconds most, const std::function<bool()>& is_over,
               std::chrono::nanoseconds nap = kShortNap);

/// Waits until there is something to read, or the other side is closed. False where neither came within `most`,
/// whatever signals came meanwhile.
bool wait_readable(int descriptor, std::chrono::milliseconds most);

}  // namespace tutti::harness::process
