// SPDX-License-Identifier: Apache-2.0
// On many ranks: that plans of some ranks refine their steps, where executing those of all ranks takes too long.
#pragma once

#include "impl/schedule/schedule.h"
#include "impl/types/status.h"

namespace tutti {

/// Plans that were bound and refine their steps (refines.h).
struct RefinedPlans {
  int plans = 0;
  int ranks = 0;  ///< whose plans they are
};

/// Binds plans of ranks 0, 1 and P-1, of the root and of a drawn one, in the forms of forms.h. Demands that they refine
/// their steps, and that those of one form are of one call. A plan's cost is its ops, operands and exposures: about
/// 2^20 of them are looked at on a power of two and on at most 48 ranks. On another number they are a few hundred, at
/// least one plan, in an order that the number of ranks draws. A plan with more than 2^21 slices is left out. Requires:
/// no step has a flaw. Errors: refuted with the form and the departure; those of bind.
[[nodiscard]] Result<RefinedPlans> refine_some_plans(const Schedule& schedule);

}  // namespace tutti
