// SPDX-License-Identifier: Apache-2.0
// How the ranks come together before a sample: the value of --sync. Apart from sweep.h, so that measuring need not know
// what a sweep is.
#pragma once

#include <cstdint>

#include "harness/floors.h"

namespace tutti::harness::cases {

enum class Synchronisation : std::uint8_t {
  roundtime,      ///< all start at an announced instant of the common clock; with a late arrival it is no sample
  dissemination,  ///< all leave a barrier of the harness and start at once
  library,        ///< all leave the barrier of the system under test and start at once
};

}  // namespace tutti::harness::cases
