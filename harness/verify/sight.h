// SPDX-License-Identifier: Apache-2.0
// What verification looks at: all of it, unless a test shows what a blind verifier misses.
#pragma once

#include "harness/floors.h"

namespace tutti::harness::verify {

struct Sight {
  bool outputs = true;     ///< results, outputs that are not to be written, gaps
  bool inputs = true;      ///< that they were only read
  bool guards = true;      ///< around both
  bool afterwards = true;  ///< at all of it again, some time after completion
  bool barriers = true;    ///< that no rank leaves one before the last has entered
};

}  // namespace tutti::harness::verify
