// SPDX-License-Identifier: Apache-2.0
// How a Status becomes an exception: Python sees a RuntimeError.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "impl/types/status.h"

namespace tutti::bindings {

/// The call, what went wrong, and its code. The call is that of c10d, with the backend's name before it. Programs look
/// for "Timed out", which is what Gloo says.
[[nodiscard]] inline std::runtime_error failure_of(std::string_view call, const Status& status) {
  const std::string_view timed_out = status.code() == Code::timeout ? "Timed out on this rank: " : "";
  return std::runtime_error(fmt::format("{}: {}{} ({})", call, timed_out, status.message(), to_string(status.code())));
}

inline void check(std::string_view call, const Status& status) {
  if (!status.is_ok()) throw failure_of(call, status);
}

/// A mistake of the caller, found before anything was posted.
template <class... Args>
[[noreturn]] void refuse(std::string_view call, fmt::format_string<Args...> format, Args&&... args) {
  throw std::runtime_error(fmt::format("{}: {}", call, fmt::format(format, std::forward<Args>(args)...)));
}

}  // namespace tutti::bindings
