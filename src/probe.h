// SPDX-License-Identifier: Apache-2.0
// Finds out whether a reference can be started here, before anything is measured. It never happens in the launcher
// itself: the library of a reference is loaded by processes of its own, one library in each.
#pragma once

#include <string>

#include "impl/types/status.h"

namespace tutti::program {

/// Whether the mpirun in PATH starts ranks of the reference `name`. A child says which library it is. Where mpirun says
/// the same of itself, that is enough; otherwise it starts two ranks of it, which must find each other. Asked once per
/// process and reference; takes 0.1 s, with ranks 1 s or so, at most a minute. Ends the program where it is
/// interrupted. Errors: unavailable with the reason, whatever it is.
[[nodiscard]] Status try_to_start(const std::string& name);

}  // namespace tutti::program
