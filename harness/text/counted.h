// SPDX-License-Identifier: Apache-2.0
// A number with its noun, as `impl` has it.
#pragma once

#include "harness/floors.h"
#include "impl/types/counted.h"

namespace tutti::harness::text {
using tutti::counted;
}  // namespace tutti::harness::text
