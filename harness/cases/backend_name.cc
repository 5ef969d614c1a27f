// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/backend_name.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "impl/types/names.h"
#include "tutti_backend_rows.h"

namespace tutti::harness::cases {

std::string backend_meant(std::string_view name, std::span<const std::string> names) {
  for (const auto& row : kTuttiBackendRows) {
    const bool is_alias = *row.alias != '\0' && is_same_name(name, row.alias);
    if (is_alias && std::ranges::find(names, row.name) != names.end()) return suggestion(row.name, names);
  }
  return suggestion(name, names);
}

Status unknown_backend(std::string_view name, std::span<const std::string> names) {
  return error(Code::invalid_argument, "unknown backend '{}'{} (one of: {})", shown(name), backend_meant(name, names),
               fmt::join(names, " "));
}

}  // namespace tutti::harness::cases
