// SPDX-License-Identifier: Apache-2.0
// The one grammar of lists in options: items between commas, none of them empty, no item kept twice.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <fmt/ranges.h>

#include "harness/floors.h"
#include "impl/types/names.h"
#include "impl/types/status.h"

namespace tutti::harness::cases {

/// What stands for every item of a list, and for the choice that is left to tutti.
inline constexpr std::string_view kAll = "all";
inline constexpr std::string_view kAuto = "auto";

[[nodiscard]] inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t end = text.find(separator); end != std::string_view::npos; end = text.find(separator)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

/// `kind` is the plural that messages use. Errors: invalid_argument showing the list without its empty items.
[[nodiscard]] inline Result<std::vector<std::string_view>> split_list(std::string_view kind, std::string_view text) {
  std::vector<std::string_view> items = split(text, ',');
  if (std::erase(items, std::string_view()) == 0) return items;
  if (items.empty()) return error(Code::invalid_argument, "no {} in '{}': at least one is needed", kind, shown(text));
  return error(Code::invalid_argument, "{} '{}' has an empty item: did you mean '{}'?", kind, shown(text),
               shown(fmt::format("{}", fmt::join(items, ","))));
}

template <class T>
void append_new(std::vector<T>& values, T value) {
  if (std::ranges::find(values, value) == values.end()) values.push_back(std::move(value));
}

/// The same for numbers of which there may be thousands.
template <class Number>
class Distinct {
 public:
  void add(Number number) {
    if (seen_.insert(number).second) values_.push_back(number);
  }
  [[nodiscard]] const std::vector<Number>& values() const { return values_; }

 private:
  std::vector<Number> values_;
  std::unordered_set<Number> seen_;
};

}  // namespace tutti::harness::cases
