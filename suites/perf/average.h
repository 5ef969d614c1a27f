// SPDX-License-Identifier: Apache-2.0
// How the ranks' times become the one that a row shows.
#pragma once

#include "harness/measure/stream.h"

namespace tutti::perf {

/// Of -a: 0 rank 0's, 1 the ranks' mean, 2 the least of them, 3 the most.
[[nodiscard]] inline double reported_us(const harness::StreamResult& result, int average) {
  switch (average) {
    case 0:
      return result.rank0_us;
    case 2:
      return result.least_us;
    case 3:
      return result.most_us;
    default:
      return result.mean_us;
  }
}

}  // namespace tutti::perf
