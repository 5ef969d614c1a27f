// SPDX-License-Identifier: Apache-2.0
// Texts that are one whole number.
#pragma once

#include <charconv>
#include <string_view>
#include <system_error>

#include "impl/types/names.h"
#include "impl/types/status.h"

namespace tutti {

/// `what`: with its article, such as "a seed". Errors: invalid_argument naming the text, the range and the nearest
/// right number.
template <class Number>
[[nodiscard]] Result<Number> parse_number(std::string_view text, std::string_view what, Number least, Number most) {
  const char* const end = text.data() + text.size();
  Number value{};
  const auto [stop, failure] = std::from_chars(text.data(), end, value);
  const bool is_number = failure != std::errc::invalid_argument && stop == end;
  const bool is_too_large = failure == std::errc::result_out_of_range ? !text.starts_with('-') : value > most;
  if (is_number && failure == std::errc() && value >= least && value <= most) return value;
  return error(Code::invalid_argument, "'{}' is not {}: a whole number from {} to {}: did you mean '{}'?", shown(text),
               what, least, most, is_number && is_too_large ? most : least);
}

}  // namespace tutti
