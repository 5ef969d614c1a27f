// SPDX-License-Identifier: Apache-2.0
// From a call as backend.h has it to one of oneCCL, or the reason why oneCCL has no such call.
#pragma once

#include <string>

#include "harness/backends/backend.h"
#include "harness/backends/oneccl/calls.h"

namespace tutti::backend_oneccl {

/// Fills `prepared`; its group may be null. Returns why oneCCL cannot do it, or nothing. Does not call oneCCL.
[[nodiscard]] std::string translate(const TuttiBackendCall& call, Prepared& prepared);

}  // namespace tutti::backend_oneccl
