// SPDX-License-Identifier: Apache-2.0
// Texts of the table's fields and headings.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "harness/record/record.h"

namespace tutti::harness::report {

inline constexpr std::string_view kMissing = "-";  ///< stands for "not measured"

/// Four significant digits, and never more than three decimals: what the eye compares down a column.
[[nodiscard]] std::string number(const std::optional<double>& value);
/// Half of the width of a time's interval, in % of the time.
[[nodiscard]] std::string interval(const Row& row);
/// Two decimals; three where two would leave a single digit, or none.
[[nodiscard]] std::string ratio_text(const std::optional<double>& value);
/// The work of a block, in words.
[[nodiscard]] std::string title_of(const Row& row);
/// What the times of a cell mean other than usual, a line; empty: nothing.
[[nodiscard]] std::string conditions_line(const Row& row);
/// With a line break at its end.
[[nodiscard]] std::string without_trailing_spaces(std::string line);

}  // namespace tutti::harness::report
