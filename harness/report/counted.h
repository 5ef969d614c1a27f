// SPDX-License-Identifier: Apache-2.0
// A number with its noun: "1 row", "2 rows".
#pragma once

#include <concepts>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace tutti::harness {

/// Of nouns whose plural is an s.
template <std::integral Number>
[[nodiscard]] std::string counted(Number number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

}  // namespace tutti::harness
