// SPDX-License-Identifier: Apache-2.0
// Stacks of this process: what `ulimit -s` leaves is compared with what a rank needs.
#pragma once

#include <cstdint>

#include "harness/floors.h"
#include "impl/types/status.h"

namespace tutti::harness::process {

inline constexpr std::uint64_t kUsualStack = std::uint64_t{8} << 20;        ///< bytes, without a limit
inline constexpr std::uint64_t kLeastThreadStack = std::uint64_t{1} << 20;  ///< bytes; below it, ensure_stacks helps

/// Gives the first thread a stack of at least 256 KiB, and threads that are started from now on one of at least 1 MiB.
/// The C library would take both sizes from the limit. Called before there is a thread. Errors: resource with the
/// numbers, if the hard limit is too small.
Status ensure_stacks();

}  // namespace tutti::harness::process
