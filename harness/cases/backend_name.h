// SPDX-License-Identifier: Apache-2.0
// A name that no backend has, in messages: some are known by a shorter one, which no letters lead to.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "harness/floors.h"
#include "impl/types/status.h"

namespace tutti::harness::cases {

/// `: did you mean 'openmpi'?`: of `names` the nearest one, or the one that `name` is short for. Or nothing.
[[nodiscard]] std::string backend_meant(std::string_view name, std::span<const std::string> names);

/// As unknown_name, with backend_meant's question.
[[nodiscard]] Status unknown_backend(std::string_view name, std::span<const std::string> names);

}  // namespace tutti::harness::cases
