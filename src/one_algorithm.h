// SPDX-License-Identifier: Apache-2.0
// What the commands that show one algorithm share: `tutti explain` and `tutti draw`.
#pragma once

#include "impl/algorithms/algorithm.h"
#include "impl/types/status.h"

namespace tutti::program {

/// What `auto` takes for a few bytes if every rank has a core and all buffers can be addressed: the same on every
/// machine.
[[nodiscard]] const Algorithm& usual_algorithm(const Problem& problem);

}  // namespace tutti::program
