// SPDX-License-Identifier: Apache-2.0
// An exchange for processes that have nothing but a folder in common.
#pragma once

#include <string>

#include "impl/embed/exchange.h"
#include "impl/types/visibility.h"

namespace tutti::embed {

/// A file for each key, in a folder of one world: it is empty before, and what is in it stays. Errors: invalid_argument
/// where it is no folder, or others than this user may write into it.
[[nodiscard]] TUTTI_API Result<Exchange> exchange_in(const std::string& folder);

}  // namespace tutti::embed
