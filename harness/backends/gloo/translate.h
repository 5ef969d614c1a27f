// SPDX-License-Identifier: Apache-2.0
// From a call as backend.h has it to one of Gloo, or the reason why Gloo has no such call.
#pragma once

#include <string>

#include "harness/backends/backend.h"
#include "harness/backends/gloo/calls.h"

namespace tutti::backend_gloo {

/// Fills `arguments`, whose seat is set. Returns why Gloo cannot do it, or nothing. Does not call Gloo.
[[nodiscard]] std::string translate(const TuttiBackendCall& call, Arguments& arguments);

}  // namespace tutti::backend_gloo
