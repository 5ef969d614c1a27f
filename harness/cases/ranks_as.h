// SPDX-License-Identifier: Apache-2.0
// What a rank is to the operating system: the value of --ranks-as, and the part "P4.processes" of a case id. Apart from
// case.h, which has its names, so that the launcher need not know what a case is.
#pragma once

#include <cstdint>

#include "harness/floors.h"

namespace tutti::harness::cases {

enum class RanksAs : std::uint8_t {
  processes,  ///< one process per rank
  threads,    ///< one process, one thread per rank
  tasks,      ///< one process, one thread that progresses all ranks
  blocks,     ///< one process, whose one thread starts kernels: a rank is some thread blocks of a GPU
};

/// What runs the steps of a rank.
enum class RanksOn : std::uint8_t {
  cores,          ///< a thread of the host
  shared_device,  ///< thread blocks of a device on which other ranks are too
  own_device,     ///< thread blocks of a device of its own
};

/// Whether one thread of the host calls for all ranks.
[[nodiscard]] constexpr bool share_a_host(RanksAs ranks_as) {
  return ranks_as == RanksAs::tasks || ranks_as == RanksAs::blocks;
}

}  // namespace tutti::harness::cases
