// SPDX-License-Identifier: Apache-2.0
// Numbers in fields of files.
#pragma once

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>

#include "harness/floors.h"

namespace tutti::harness::text {

/// The finite number that the whole text is; empty: it is not one.
template <class Number>
[[nodiscard]] std::optional<Number> number_in(std::string_view text) {
  const char* const end = text.data() + text.size();
  Number value{};
  const auto [stop, failure] = std::from_chars(text.data(), end, value);
  if (failure != std::errc() || stop != end) return std::nullopt;
  if constexpr (std::is_floating_point_v<Number>) {
    if (!std::isfinite(value)) return std::nullopt;
  }
  return value;
}

}  // namespace tutti::harness::text
