// SPDX-License-Identifier: Apache-2.0
// What else people call collectives: parse_collective reads these names too, rows and ids never have them. See
// impl/types/aliases.h.
#pragma once

#include <string_view>

#include "impl/collective/collective.h"

namespace tutti {

[[nodiscard]] std::string_view aliases_of(Collective collective);

}  // namespace tutti
