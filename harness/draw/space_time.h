// SPDX-License-Identifier: Apache-2.0
// The space-time picture: ranks down, rounds to the right. Boxes are what a rank holds, arrows what it sends.
#pragma once

#include <string>
#include <string_view>

#include "harness/draw/lengths.h"
#include "harness/draw/story.h"

namespace tutti::harness::draw {

/// `title` and `idea` stand above the picture. With `lengths` boxes and arrows are as wide as their blocks are long.
[[nodiscard]] std::string space_time_svg(const Story& story, std::string_view title, std::string_view idea,
                                         const Lengths& lengths = {});

}  // namespace tutti::harness::draw
