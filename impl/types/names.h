// SPDX-License-Identifier: Apache-2.0
// Names that people type: finding the nearest right one for a wrong one, and the one sentence that says so.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "impl/types/status.h"

namespace tutti {

/// The candidate with the least edit distance (Damerau-Levenshtein, adjacent swaps count one); empty if there is none.
[[nodiscard]] std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

/// invalid_argument: `unknown <kind> 'flaot': did you mean 'float'? (one of: float int32 bfloat16)`.
[[nodiscard]] Status unknown_name(std::string_view kind, std::string_view name,
                                  std::span<const std::string> candidates);

}  // namespace tutti
