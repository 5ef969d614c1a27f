// SPDX-License-Identifier: Apache-2.0
// JSON for files and for stdout.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "harness/floors.h"
#include "impl/types/printable.h"

namespace tutti::harness::text {

/// `value` as JSON; with an `indent` of 0 or more in lines. What would steer a terminal is escaped, and a byte that is
/// no UTF-8 becomes U+FFFD.
template <class Json>
[[nodiscard]] std::string json_text(const Json& value, int indent = -1) {
  return printable(value.dump(indent, ' ', false, Json::error_handler_t::replace));
}

}  // namespace tutti::harness::text
