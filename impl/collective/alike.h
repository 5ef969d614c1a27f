// SPDX-License-Identifier: Apache-2.0
// Collectives in which no rank has a part of its own: how long a rank waits in one then says something of the rank.
#pragma once

#include "impl/collective/collective.h"

namespace tutti {

/// Whether all ranks do the same: no root, no order of ranks, no lengths of their own.
[[nodiscard]] bool ranks_are_alike(Collective collective);

}  // namespace tutti
