// SPDX-License-Identifier: Apache-2.0
// JSON that comes from outside this process. Text that is no JSON, is nested without end or has another shape than
// expected is an error, never an exception.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "harness/floors.h"
#include "impl/types/names.h"
#include "impl/types/status.h"

namespace tutti::harness::text {

inline constexpr int kMostNested = 32;  ///< whatever copies or prints a value calls itself for what is in it

/// Discarded where it is no JSON, or nested deeper.
template <class Json = nlohmann::json>
[[nodiscard]] Json parse_json(std::string_view text) {
  bool is_too_deep = false;
  const auto watch = [&](int depth, auto, Json&) {
    is_too_deep |= depth > kMostNested;
    return !is_too_deep;
  };
  Json json = Json::parse(text, watch, false);
  return is_too_deep ? Json(Json::value_t::discarded) : json;
}

/// A whole number that is one here too.
template <class Json>
[[nodiscard]] std::optional<std::int64_t> whole_number(const Json& json) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!json.is_number_integer()) return std::nullopt;
  if (json.is_number_unsigned() && json.template get<std::uint64_t>() > kMost) return std::nullopt;
  return json.template get<std::int64_t>();
}

/// A key's whole number goes to `to`. Errors: invalid_argument where it is no number from `least` to the largest one
/// that fits. To be called in what read_json calls, as it may be asked for a key that is not there.
template <class Number>
[[nodiscard]] Status read_number(const nlohmann::json& object, const char* key, Number& to,
                                 std::int64_t least = std::numeric_limits<std::int64_t>::min()) {
  const std::optional<std::int64_t> number = whole_number(object.at(key));
  if (!number || *number < least || !std::in_range<Number>(*number))
    return error(Code::invalid_argument, "'{}' is no whole number that can be one here", key);
  to = static_cast<Number>(*number);
  return {};
}

/// What `read` makes of a JSON object; it may ask for keys by type as if they were there. Errors: `code`, beginning
/// with `what`: no object, or a key of another type.
template <class Read>
[[nodiscard]] auto read_json(Code code, std::string_view what, std::string_view text, Read read)
    -> decltype(read(nlohmann::json())) {
  const auto json = parse_json(text);
  if (!json.is_object()) return error(code, "{} is not a JSON object", what);
  try {
    return read(json);
  } catch (const nlohmann::json::exception& failure) {
    return error(code, "{}: {}", what, shown(failure.what()));
  }
}

}  // namespace tutti::harness::text
