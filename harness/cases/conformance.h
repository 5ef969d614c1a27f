// SPDX-License-Identifier: Apache-2.0
// The cases of `tutti check`, made from the registries: every algorithm x counts {0, 1, P-1, P, P+1, 1023, above one
// segment} x placements x buffers x roots {0, P-1}, and every dtype x op once per algorithm.
#pragma once

#include <vector>

#include "harness/cases/case.h"
#include "harness/cases/sweep.h"

namespace tutti::harness {

/// Of the sweep count: collectives, algorithms, dtypes, ops, ranks, ranks_as. Sorted by ranks.
/// Errors: invalid_argument when a named algorithm is none of the collectives'.
[[nodiscard]] Result<std::vector<Case>> conformance_cases(const Sweep& sweep);

}  // namespace tutti::harness
