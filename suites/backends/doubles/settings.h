// SPDX-License-Identifier: Apache-2.0
// What a test tells the doubles.
#pragma once

#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <unistd.h>

namespace tutti::doubles {

/// The number in an environment variable.
[[nodiscard]] inline int number_of(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

/// A line in the file of TUTTI_DOUBLE_LOG, by which a test sees what was asked of the doubles.
inline void tell(const std::string& line) {
  const char* const path = std::getenv("TUTTI_DOUBLE_LOG");
  if (path == nullptr) return;
  const int file = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const std::string text = line + "\n";
  // One write each: lines of several threads and processes do not mix.
  if (::write(file, text.data(), text.size()) < 0) std::abort();
  ::close(file);
}

}  // namespace tutti::doubles
