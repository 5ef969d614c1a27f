// SPDX-License-Identifier: Apache-2.0
// What gpu_unit asks of the device text of one dtype (gpu_unit.cu).
#pragma once

#include <cstdint>
#include <string>

#include "impl/types/dtype.h"

namespace tutti::cuda {

/// What comparing came to.
struct Compared {
  std::int64_t elements = 0;
  std::int64_t wrong = 0;
  std::string first;  ///< of what is wrong, in a sentence

  Compared& operator+=(const Compared& other) {
    elements += other.elements;
    wrong += other.wrong;
    if (first.empty()) first = other.first;
    return *this;
  }
};

/// Of a dtype, on GPU 0 and on the host, bit for bit but for the payloads of NaNs. `packs`: of 16 bytes.
struct DeviceText {
  Compared (*arithmetic)(int packs) = nullptr;  ///< every op, against the CPU kernels
  Compared (*inputs)(int packs) = nullptr;      ///< every op, against the same functions on the host
};

#define TUTTI_ROW(id, type, name) extern const DeviceText k_text_##id;
TUTTI_DTYPES_OF_ALL(TUTTI_ROW)
#undef TUTTI_ROW

}  // namespace tutti::cuda
