// SPDX-License-Identifier: Apache-2.0
// A message between two ranks, as its receiver sees it before it takes it.
#pragma once

#include <cstdint>

#include "impl/types/dtype.h"

namespace tutti {

struct Message {
  int tag = 0;
  std::int64_t bytes = 0;
  Dtype dtype = Dtype::f32;
};

}  // namespace tutti
