// SPDX-License-Identifier: Apache-2.0
// What the commands that show one algorithm share: `tutti explain` and `tutti draw`.
#pragma once

#include <string_view>

#include "impl/algorithms/algorithm.h"
#include "impl/types/status.h"

namespace tutti::program {

/// `parsed`, or its error with the flag in front.
template <class T>
Result<T> of_flag(std::string_view flag, Result<T> parsed) {
  if (parsed.is_ok()) return parsed;
  return error(parsed.status().code(), "{}: {}", flag, parsed.status().message());
}

/// What `auto` takes for a few bytes if every rank has a core and all buffers can be addressed: the same on every
/// machine.
[[nodiscard]] const Algorithm& usual_algorithm(const Problem& problem);

}  // namespace tutti::program
