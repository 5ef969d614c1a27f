// SPDX-License-Identifier: Apache-2.0
// What a process holds and what it leaves on the machine, to be compared before and after: descriptors, processes,
// shared memory.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "harness/floors.h"

namespace tutti::harness::soak {

/// Of this process.
[[nodiscard]] std::int64_t count_descriptors();
/// Mappings of memory of that name: memfds that it has mapped.
[[nodiscard]] std::int64_t count_mappings(std::string_view name);

struct Traces {
  std::int64_t descriptors = 0;
  std::int64_t children = 0;    ///< live, or ended and not waited for
  std::int64_t mappings = 0;    ///< of shared memory of ours
  std::set<std::string> files;  ///< in /dev/shm, of any process

  [[nodiscard]] static Traces now();
};

/// What there is after and was not before, in words; empty: nothing. A new file in /dev/shm counts when it is this
/// user's and no process has it open or mapped: its owner has ended, or has forgotten it.
[[nodiscard]] std::string left_behind(const Traces& before, const Traces& after);

}  // namespace tutti::harness::soak
