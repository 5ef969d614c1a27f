// SPDX-License-Identifier: Apache-2.0
// How long ago this process began.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "harness/floors.h"

namespace tutti::harness::machine {

/// Seconds since the kernel made this process, in steps of a clock tick, usually 0.01 s. It is not younger for a
/// program that it has executed since. Empty if /proc does not tell.
[[nodiscard]] std::optional<double> process_age_s();

/// Field 22 of a /proc/PID/stat: clock ticks from boot to the start of the process. Empty if the text has none. The
/// second field, a name in brackets, may hold brackets and spaces.
[[nodiscard]] std::optional<std::int64_t> start_ticks_in(std::string_view stat);

}  // namespace tutti::harness::machine
