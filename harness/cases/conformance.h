// SPDX-License-Identifier: Apache-2.0
// The cases of `tutti check`, made from the registries. Every algorithm has counts {0, 1, P-1, P, P+1, 1023, above one
// segment} x placements x buffers x roots {0, P-1}. It also has every dtype x op that exists, once. Of v forms: every
// algorithm that takes counts x patterns x elements of all blocks together {0, 1, P+1, 1023, many slices} x placements
// x roots {0, P-1}, and again every dtype x op. A backend that is not tutti's has the same cases once per collective.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/cases/case.h"
#include "harness/cases/expand.h"
#include "harness/cases/sweep.h"

namespace tutti::harness::cases {

/// A case whose buffers would be larger on all ranks together stays within one segment: memory is not what is checked.
inline constexpr std::int64_t kMostCaseBytes = std::int64_t{512} << 20U;

struct Conformance {
  std::vector<Case> cases = {};
  std::vector<LeftOut> left_out = {};  ///< pairs of dtype and op from `all` that do not exist
};

/// These of the sweep count: collectives, backends, algorithms, dtypes, ops, ranks, ranks_as, and counts if they are
/// not `equal` alone: without them, all patterns. Sorted by ranks. Counts, placements, buffers and roots are those of
/// the first dtype and op that exist together. The longest blocks have the first dtype of one byte instead, if a rank's
/// buffer would have more than 1 MiB of the other. Errors: invalid_argument when tutti is among the backends and none
/// of the collectives has a named algorithm, or a named pair of dtype and op does not exist.
[[nodiscard]] Result<Conformance> conformance_cases(const Sweep& sweep);

}  // namespace tutti::harness::cases
