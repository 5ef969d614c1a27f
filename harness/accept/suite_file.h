// SPDX-License-Identifier: Apache-2.0
// The suite of an acceptance as a user writes it. What it does not name is as without it.
//
//   margin = "5%"              # slower than the fleet by more is a fault
//   too_fast = "10%"           # so is faster by more
//   message_size = "1M"        # between two nodes; groups have up to 16 times as much
//   seed = 1                   # of all that is drawn
//
//   [[stage]]                  # if stages are named, only these are played, always in their own order
//   name = "pairs"             # see acceptance.h
//   full = true                # of pairs: every pair, however many nodes there are
//   [[stage]]
//   name = "soak"
//   time = "5m"                # of soak
//   blocking = false           # nodes that fail in it play in the later stages all the same
#pragma once

#include <string_view>

#include "harness/accept/acceptance.h"
#include "harness/floors.h"
#include "impl/types/status.h"

namespace tutti::harness::accept {

/// Errors: invalid_argument that names the line, what is wrong there, and the nearest right.
[[nodiscard]] Result<AcceptPlan> plan_from_toml(std::string_view text);

inline constexpr double kLeastMargin = 0.005, kMostMargin = 0.5;
inline constexpr std::int64_t kMostMessage = std::int64_t{1} << 30;

}  // namespace tutti::harness::accept
