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
/// their steps, and that those of one form are of one call. What a plan costs is its ops, operands and exposures. On a
/// power of two and on at most 48 ranks 2^18 of them are looked at, and on another number 200, in an order that the
/// number of ranks draws. At least one plan is looked at. Left out are plans of several slices in a unit that alone
/// would be more, and plans of more than 2^21 slices.
/// Errors: refuted with the form and the departure; those of bind.
[[nodiscard]] Result<RefinedPlans> refine_some_plans(const Schedule& schedule);

}  // namespace tutti
