// SPDX-License-Identifier: Apache-2.0
// What premul_sum multiplies inputs by, on the host and on a device.
#pragma once

#include "harness/floors.h"
#include "impl/types/host_device.h"

namespace tutti::harness::verify {

/// What premul_sum multiplies `rank`'s input by: not 1, and not the same on neighbours.
[[nodiscard]] TUTTI_HOST_DEVICE constexpr int factor_of(int rank) { return rank % 2 == 0 ? 4 : 2; }

}  // namespace tutti::harness::verify
