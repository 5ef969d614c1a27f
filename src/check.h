// SPDX-License-Identifier: Apache-2.0
// What the files of `tutti check` share.
#pragma once

#include "src/options.h"

namespace tutti::program {

/// The verifier on trial, with settings.faults. `has_dtypes`: --dtypes was given, so those are tried, not one drawn of
/// each class. An exit code.
[[nodiscard]] int check_faults(const Settings& settings, bool has_dtypes);

}  // namespace tutti::program
