// SPDX-License-Identifier: Apache-2.0
// The name of counts that are numbers, for code that makes the numbers itself.
#pragma once

#include <string>
#include <vector>

#include "harness/floors.h"
#include "impl/collective/collective.h"

namespace tutti::harness::cases {

/// `file-<hash>`: the same as that of a file which holds these numbers.
[[nodiscard]] std::string counts_name_of(const std::vector<Count>& numbers);

}  // namespace tutti::harness::cases
