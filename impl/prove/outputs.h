// SPDX-License-Identifier: Apache-2.0
// The end of a proof of values: what the outputs hold against what the collective means. Where that differs, it says in
// words which contribution is missing or one too many.
#pragma once

#include "impl/prove/contents.h"
#include "impl/prove/values.h"

namespace tutti {

/// Finds output bytes that hold something else than they should, and derives keeps_order and same_bits.
/// Requires: the plans ran to their end with `contents` as visitor.
void check_outputs(const PlanSet& set, const Layout& layout, Contents<HashLane>& contents, Labels& labels,
                   Findings& findings);

}  // namespace tutti
