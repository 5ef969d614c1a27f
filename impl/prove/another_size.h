// SPDX-License-Identifier: Apache-2.0
// What was proved in one size holds in every other. Of a proof, only the ends of slots, of the flag line and of scratch
// depend on how long a byte interval is. All else depends on which intervals meet.
#pragma once

#include "impl/prove/prove.h"

namespace tutti {

/// Whether the plans of `set` are those of `other` with every offset and length the same multiple, so that they hold
/// what those hold. Requires: both are of one schedule and passed check_plans. False also where an end might decide:
/// longer slices, other slots, MOVEs in flag lines, less scratch.
[[nodiscard]] bool is_in_another_size(const PlanSet& set, const PlanSet& other);

}  // namespace tutti
