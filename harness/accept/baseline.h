// SPDX-License-Identifier: Apache-2.0
// The speeds of a fleet that was accepted before.
#pragma once

#include <string_view>

#include "harness/accept/findings.h"
#include "harness/floors.h"
#include "impl/types/status.h"

namespace tutti::harness::accept {

inline constexpr int kVersionOfJson = 1;  ///< of what `--json` writes

/// From the JSON of an earlier acceptance (accept_json). Errors: invalid_argument if it is no such document, did not
/// pass, or has no speed.
[[nodiscard]] Result<Baseline> baseline_from_json(std::string_view text);

}  // namespace tutti::harness::accept
