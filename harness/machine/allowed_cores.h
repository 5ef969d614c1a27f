// SPDX-License-Identifier: Apache-2.0
// The cores that ranks may run on, asked in one place.
#pragma once

#include <vector>

#include "harness/floors.h"

namespace tutti::harness::machine {

/// Cores that the calling thread may use, rising: those of the process, unless the thread was pinned. All that are
/// online where the kernel does not say. Never empty.
[[nodiscard]] std::vector<int> allowed_cores();

}  // namespace tutti::harness::machine
