// SPDX-License-Identifier: Apache-2.0
// The one way in which files of users are read: what is no text, has no end or never comes is an error.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "harness/floors.h"
#include "impl/types/status.h"

namespace tutti::harness::text {

inline constexpr std::size_t kMostInSuite = std::size_t{1} << 20;     ///< bytes of a suite file
inline constexpr std::size_t kMostInList = std::size_t{16} << 20;     ///< of a hostfile, of counts or a matrix
inline constexpr std::size_t kMostInResult = std::size_t{1} << 30;    ///< of a result
inline constexpr std::chrono::milliseconds kReadingPatience{10'000};  ///< without a byte of a pipe or terminal

/// The text of a file that the user named, without a byte order mark. A pipe or terminal is read until its end. At most
/// `most` bytes and one more are read. Errors: invalid_argument naming the path and the reason: it cannot be read, is a
/// directory, has more than `most` bytes, has a byte of 0 or UTF-16 and so is no text, or sent nothing for `patience`.
[[nodiscard]] Result<std::string> read_file(const std::string& path, std::size_t most,
                                            std::chrono::milliseconds patience = kReadingPatience);

}  // namespace tutti::harness::text
