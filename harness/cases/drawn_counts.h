// SPDX-License-Identifier: Apache-2.0
// The lengths that a mixture of experts makes: the ranks are both who has the tokens and who has the experts. All of
// them are drawn from one seed, so every rank knows what each other one sends.
//
// A row has what one rank sends to each. Patterns share out `elements` in each row on average, so cells of one size
// move equally much in all. What the busiest rank sends or receives may be many times as much.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/cases/counts.h"

namespace tutti::harness::cases {

/// Weights of rows x ranks blocks, in the order of the rows: what each has of rows x elements. Requires: the pattern
/// is drawn (is_drawn).
[[nodiscard]] std::vector<std::uint64_t> drawn_weights(const Counts& counts, int rows, int ranks, Count elements);

}  // namespace tutti::harness::cases
