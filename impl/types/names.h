// SPDX-License-Identifier: Apache-2.0
// What people type, in messages: the nearest right name for a wrong one, the one sentence that says so, and a text that
// may hold anything.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "impl/types/status.h"

namespace tutti {

inline constexpr std::size_t kMostShown = 200;  ///< bytes

/// `text` for a message: in one line, control characters as \n or \x1b, and of a long one the beginning.
[[nodiscard]] std::string shown(std::string_view text);

/// The candidate with the least edit distance (Damerau-Levenshtein, adjacent swaps count one); empty if there is none.
/// Of a long name the beginning is compared.
[[nodiscard]] std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

/// invalid_argument: `unknown <kind> 'flaot': did you mean 'float'? (one of: float int32 bfloat16)`.
[[nodiscard]] Status unknown_name(std::string_view kind, std::string_view name,
                                  std::span<const std::string> candidates);

}  // namespace tutti
