// SPDX-License-Identifier: Apache-2.0
// What a row was measured under that changes what its time means, where `tutti run` was told to: times are compared
// only where it is the same. What a case's id says is not among it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/record/record.h"

namespace tutti::harness::record {

struct Unusual {
  std::string_view column;  ///< that says so
  std::string value;
  std::string_view usual;  ///< what it is where nobody asks
  std::string words;       ///< "cache cold"
};
/// What a row does not say is as usual.
[[nodiscard]] std::vector<Unusual> unusual_conditions(const Row& row);

}  // namespace tutti::harness::record
