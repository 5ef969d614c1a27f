// SPDX-License-Identifier: Apache-2.0
// Which plans may leave a rank's memory. Over a link go the slots of channels and flag lines, and nothing else does.
#pragma once

#include "impl/schedule/plan.h"
#include "impl/transports/domain.h"
#include "impl/types/status.h"

namespace tutti {

/// Whether the plan leaves alone what its rank cannot reach: memory of ranks behind a link. It is the rank's own view.
/// A flag over a link must be one that everybody waits for, since no rank sees there what the others have completed.
/// Errors: unavailable naming the rank and what the plan would touch.
[[nodiscard]] Status check_reach(const PlanView& plan, Domain& domain);

}  // namespace tutti
