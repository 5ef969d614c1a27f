// SPDX-License-Identifier: Apache-2.0
// TOML files that a user wrote: suites, pretended clusters. toml++ parses them. What it cannot take without harm is
// refused before. For sources only: the library is many headers.
#pragma once

#include <string_view>
#include <utility>

#include <fmt/format.h>

// The library comes as headers: text/toml.cc has its functions, and programs need no file more beside them.
#define TOML_HEADER_ONLY 0
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
// Where a date is followed by something that is no time, an assertion of 3.3.0 fails: without them it is an error.
#define TOML_ASSERT(condition) static_assert(true)
#include <toml++/toml.h>

#include "harness/floors.h"
#include "impl/types/status.h"

namespace tutti::harness::text {

/// Errors: invalid_argument that names the line.
[[nodiscard]] Result<toml::table> parse_toml(std::string_view text);
/// The line where it begins.
[[nodiscard]] int toml_line(const toml::node& node);
/// "line 3: " and what `format` makes of `args`.
template <class... Args>
[[nodiscard]] Status at_line(const toml::node& node, fmt::format_string<Args...> format, Args&&... args) {
  return error(Code::invalid_argument, "line {}: {}", toml_line(node),
               fmt::format(format, std::forward<Args>(args)...));
}
/// "line 3: 'sizes' must be a text".
[[nodiscard]] Status wrong_toml_type(const toml::node& node, std::string_view key, std::string_view wanted);

}  // namespace tutti::harness::text
