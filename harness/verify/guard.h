// SPDX-License-Identifier: Apache-2.0
// What a guard zone holds, on the host and on a device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "harness/floors.h"
#include "impl/types/host_device.h"

namespace tutti::harness::verify {

inline constexpr std::uint64_t kGuardPeriod = 191;
inline constexpr std::uint64_t kGuardStep = 29;
/// The guard's byte where offset times kGuardStep leaves `place`, of kGuardPeriod. Never 0 and never 0xff.
[[nodiscard]] TUTTI_HOST_DEVICE constexpr std::byte guard_at(std::uint64_t place) {
  return static_cast<std::byte>(0x21U + place);
}
/// The same at `offset` from the first byte of a buffer's memory. It depends on the place, so that a copy of one part
/// of the guard onto another shows.
[[nodiscard]] TUTTI_HOST_DEVICE constexpr std::byte guard_byte(std::uint64_t offset) {
  return guard_at(offset * kGuardStep % kGuardPeriod);
}

}  // namespace tutti::harness::verify
