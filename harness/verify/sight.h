// SPDX-License-Identifier: Apache-2.0
// What verification looks at: all of it, but where the verifier is on trial and is to miss something.
#pragma once

#include <string_view>

#include "harness/floors.h"
#include "impl/types/status.h"

namespace tutti::harness::verify {

struct Sight {
  bool outputs = true;     ///< results, outputs that are not to be written, gaps
  bool inputs = true;      ///< that they were only read
  bool guards = true;      ///< around both
  bool afterwards = true;  ///< at all of it again, some time after completion
  bool barriers = true;    ///< that no rank leaves one before the last has entered
};

/// All but the parts that the list names. Errors: invalid_argument naming the value and the nearest right name.
[[nodiscard]] Result<Sight> sight_without(std::string_view parts);

}  // namespace tutti::harness::verify
