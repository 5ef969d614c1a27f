// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "harness/floors.h"

namespace tutti::harness::board {

/// Where a rank runs.
struct RankPlace {
  int host = 0;   ///< the number of its host in the job
  int local = 0;  ///< the rank's place among the ranks of that host
};

}  // namespace tutti::harness::board
