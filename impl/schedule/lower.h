// SPDX-License-Identifier: Apache-2.0
// Lowering: one rank's steps in units become one plan's ops in bytes. The part of binding that walks the program.
#pragma once

#include "impl/schedule/bind.h"

namespace tutti {

struct LowerRequest {
  const Schedule& schedule;
  const BindRequest& request;
  Count segment = 0;       ///< elements of each block that this plan handles; may be 0
  std::uint64_t hash = 0;  ///< of the plan's key
};

/// Requires: the request is valid and the segment fits (choose_segment).
/// Errors: invalid_argument naming rank and step where flaw_of refuses a step, unless it has_sound_steps.
[[nodiscard]] Result<Plan> lower(const LowerRequest& request);

}  // namespace tutti
