// SPDX-License-Identifier: Apache-2.0
// Whether plans can be walked at all: they belong together, and every op's operands are there and are what they are
// marked as. Plans need not come from binding, so the prover asks here before it believes an index.
#pragma once

#include "impl/prove/findings.h"

namespace tutti {

/// False, and findings, where they cannot. Also refused: a MOVE in the flag line of a rank whose plan exposes user
/// buffers, for there the line holds the references to them.
[[nodiscard]] bool check_plans(const PlanSet& set, Findings& findings);

}  // namespace tutti
