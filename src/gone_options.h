// SPDX-License-Identifier: Apache-2.0
// Options that an earlier version had. For one version each is refused with what to write now.
#pragma once

#include <string>
#include <string_view>

namespace tutti::program {

/// What to write in place of `flag`, as "write --seed 1:N". Empty: no version had it.
[[nodiscard]] std::string_view in_place_of(std::string_view flag);

}  // namespace tutti::program
