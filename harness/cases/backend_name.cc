// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/backend_name.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "impl/types/names.h"

namespace tutti::harness::cases {

std::string backend_meant(std::string_view name, std::span<const std::string> names) {
  constexpr std::string_view kShort = "ompi";
  constexpr std::string_view kLong = "openmpi";
  const bool is_short = is_same_name(name, kShort) && std::ranges::find(names, kLong) != names.end();
  return suggestion(is_short ? kLong : name, names);
}

Status unknown_backend(std::string_view name, std::span<const std::string> names) {
  return error(Code::invalid_argument, "unknown backend '{}'{} (one of: {})", shown(name), backend_meant(name, names),
               fmt::join(names, " "));
}

}  // namespace tutti::harness::cases
