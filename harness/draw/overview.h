// SPDX-License-Identifier: Apache-2.0
// The picture of many ranks: distance against round, and the map of who talks to whom. As SVG, and as text.
#pragma once

#include <string>
#include <string_view>

#include "harness/draw/traffic.h"

namespace tutti::harness::draw {

[[nodiscard]] std::string overview_svg(const Traffic& traffic, std::string_view title, std::string_view idea);
/// At most 80 columns.
[[nodiscard]] std::string overview_text(const Traffic& traffic, std::string_view title, std::string_view idea);

}  // namespace tutti::harness::draw
