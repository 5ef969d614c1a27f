// SPDX-License-Identifier: Apache-2.0
// The space-time picture as text: two lines for each rank, what its output holds and what it sends; rounds to the
// right, in bands if they do not fit beside each other.
#pragma once

#include <string>

#include "harness/draw/lengths.h"
#include "harness/draw/story.h"

namespace tutti::harness::draw {

inline constexpr std::size_t kTerminal = 80;

/// Begins with an empty line; ends with what its signs mean. With `lengths` a block has as many characters as it is
/// long.
[[nodiscard]] std::string columns_text(const Story& story, const Lengths& lengths = {});

}  // namespace tutti::harness::draw
