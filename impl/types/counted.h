// SPDX-License-Identifier: Apache-2.0
// A number with its noun: "1 row", "2 rows".
#pragma once

#include <concepts>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace tutti {

/// `ending` is what the plural has besides.
template <std::integral Number>
[[nodiscard]] std::string counted(Number number, std::string_view noun, std::string_view ending = "s") {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : ending);
}

}  // namespace tutti
