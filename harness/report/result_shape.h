// SPDX-License-Identifier: Apache-2.0
// The types of what a result's JSON has beside its rows. Pages and comparisons rely on them.
#pragma once

#include <nlohmann/json.hpp>

#include "harness/floors.h"
#include "impl/types/status.h"

namespace tutti::harness::report {

/// That each member of a record, a gate's or a comparison's JSON that this build knows has its type, or is null.
/// Errors: invalid_argument naming the member, its type and what it is.
[[nodiscard]] Status check_shape(const nlohmann::ordered_json& document);

}  // namespace tutti::harness::report
