// SPDX-License-Identifier: Apache-2.0
// Values of options that are one of a few: a table of each enumeration's names, from which both directions follow.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "harness/floors.h"
#include "impl/types/names.h"
#include "impl/types/status.h"

namespace tutti::harness::cases {

/// Stores a parser's value, or passes its Status on.
template <class Parsed, class Target>
Status store(Result<Parsed> parsed, Target& target) {
  TUTTI_ASSIGN_OR_RETURN(target, std::move(parsed));
  return {};
}

/// As text; empty if it is the usual one.
template <class Number>
[[nodiscard]] std::string unusual_number(Number number, Number usual) {
  return number == usual ? std::string() : fmt::to_string(number);
}

template <class Kind>
struct Named {
  Kind kind;
  std::string_view name;
};
template <class Kind>
Named(Kind, std::string_view) -> Named<Kind>;

/// Every value of the enumeration once, in the order in which messages list them.
template <class Kind, std::size_t n>
using Names = std::array<Named<Kind>, n>;

/// Requires: the table has it.
template <class Kind, std::size_t n>
[[nodiscard]] std::string_view name_in(const Names<Kind, n>& names, Kind kind) {
  return std::ranges::find(names, kind, &Named<Kind>::kind)->name;
}

template <class Kind, std::size_t n>
[[nodiscard]] std::vector<std::string> names_in(const Names<Kind, n>& table) {
  std::vector<std::string> names;
  for (const Named<Kind>& row : table) names.emplace_back(row.name);
  return names;
}

/// `what` says what it is a name of; see is_same_name for how it may be written. Errors: invalid_argument naming the
/// text, the nearest right name and all names.
template <class Kind, std::size_t n>
[[nodiscard]] Result<Kind> parse_kind(std::string_view what, std::string_view text, const Names<Kind, n>& names) {
  const auto* const row =
      std::ranges::find_if(names, [&](const Named<Kind>& one) { return is_same_name(text, one.name); });
  if (row != names.end()) return row->kind;
  return unknown_name(what, text, names_in(names));
}

}  // namespace tutti::harness::cases
