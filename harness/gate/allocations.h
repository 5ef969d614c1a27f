// SPDX-License-Identifier: Apache-2.0
// Counts what is allocated. A program that asks for the count gets an operator new that counts.
#pragma once

#include <cstdint>

#include "harness/floors.h"

namespace tutti::harness::gate {

/// Calls of operator new by this thread so far.
[[nodiscard]] std::int64_t allocations_of_this_thread();

}  // namespace tutti::harness::gate
