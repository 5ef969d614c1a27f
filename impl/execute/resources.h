// SPDX-License-Identifier: Apache-2.0
// What a domain of a shape has for plans to use.
#pragma once

#include <cstdint>

#include "impl/schedule/bind.h"
#include "impl/transports/domain.h"

namespace tutti {

/// `cache_bytes`: see Resources.
[[nodiscard]] inline Resources resources_of(const DomainShape& shape, std::int64_t cache_bytes = 0) {
  return {.slots = shape.slots,
          .slot_bytes = static_cast<std::int64_t>(shape.slot_bytes),
          .scratch_bytes = static_cast<std::int64_t>(shape.scratch_bytes),
          .cache_bytes = cache_bytes};
}

}  // namespace tutti
