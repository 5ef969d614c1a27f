// SPDX-License-Identifier: Apache-2.0
// Lists, names and lines as people read them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "harness/floors.h"

namespace tutti::harness::text {

inline constexpr std::size_t kPageWidth = 118;

/// "a", "a and b", "a, b and c".
[[nodiscard]] std::string joined(const std::vector<std::string>& words);
/// What is done one after the other; set apart by commas where a clause has an "and" of its own.
[[nodiscard]] std::string in_order(const std::vector<std::string>& clauses);

/// A unit's name: a to z, A to Z, then u52, u53, ...
[[nodiscard]] std::string letter(int unit);
/// "b", "b and c", "c to f", "d, e and a".
[[nodiscard]] std::string letters(const std::vector<int>& units);
/// "rank 1", "ranks 1, 2 and 3", "ranks 1 to 7".
[[nodiscard]] std::string rank_list(std::vector<int> ranks);
/// A number without needless digits: 4, 0.5.
[[nodiscard]] std::string number_text(double number);

/// With `by` wherever `what`, which is not empty, stood in it.
[[nodiscard]] std::string replaced(std::string text, std::string_view what, std::string_view by);

/// A line end becomes a blank.
[[nodiscard]] std::string one_line(std::string text);

/// `text` in lines of at most `width`, each after the first indented by `indent` spaces; ends with a line end.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t indent, std::size_t width = kPageWidth);

}  // namespace tutti::harness::text
