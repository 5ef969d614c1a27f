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
};

}  // namespace tutti::harness::cases
