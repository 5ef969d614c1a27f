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

/// `text` for a message: as printable_line has it, and of a long one the beginning.
[[nodiscard]] std::string shown(std::string_view text);

/// Whether both are one name: case, '_', '-' and a prefix `MPI_` or `nccl` make no other one of it. `AllReduce` is
/// `all_reduce`, `MPI_FLOAT` is `float`.
[[nodiscard]] bool is_same_name(std::string_view one, std::string_view other);

/// Whether `name` is one of `aliases`, which have blanks between them.
[[nodiscard]] bool is_alias(std::string_view name, std::string_view aliases);

/// The nearest candidate, by the edit distance of what is_same_name compares (Damerau-Levenshtein, adjacent swaps count
/// one). Empty where no candidate is near, which is within a third of the longer name. Of a long name the beginning is
/// compared.
[[nodiscard]] std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

/// `: did you mean 'float'?`, or nothing where no candidate is near.
[[nodiscard]] std::string suggestion(std::string_view name, std::span<const std::string> candidates);

/// invalid_argument: `unknown <kind> 'flaot': did you mean 'float'? (one of: float int32 bfloat16)`; the question is
/// left out where no candidate is near.
[[nodiscard]] Status unknown_name(std::string_view kind, std::string_view name,
                                  std::span<const std::string> candidates);

}  // namespace tutti
