// SPDX-License-Identifier: Apache-2.0
// The label sends_are_stable (prove.h) in units, out of place: no source of a copying send is written later in the
// operation, by its rank or through an exposure. It is local to a rank.
#pragma once

#include "impl/schedule/schedule.h"

namespace tutti {

/// Of the sends of `rank`. Requires: no step has a flaw.
[[nodiscard]] bool sends_are_stable(const Schedule& schedule, int rank);

}  // namespace tutti
