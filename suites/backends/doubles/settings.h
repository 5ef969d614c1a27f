// SPDX-License-Identifier: Apache-2.0
// What a test tells the doubles.
#pragma once

#include <cstdlib>

namespace tutti::doubles {

/// The number in an environment variable.
[[nodiscard]] inline int number_of(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

}  // namespace tutti::doubles
