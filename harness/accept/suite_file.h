// SPDX-License-Identifier: Apache-2.0
// The suite of an acceptance as a user writes it. What it does not name is as without it.
//
//   margin = "5%"              # slower than the fleet by more is a fault
//   too_fast = "10%"           # so is faster by more
//   message_size = "1M"        # between two nodes; groups have up to 16 times as much
//   seed = 1                   # of all that is drawn
//
//   [[stage]]                  # if stages are named, only these are played, always in their own order
//   name = "inventory"         # see acceptance.h
//   blocking = ["memory"]      # a node that differs from most in it does not play
//   [[stage]]
//   name = "pairs"
//   needs = ["alone"]          # its nodes have passed these stages, and what these need
//   full = true                # every pair, however many nodes there are
//   deadline = "5x"            # of a pair: so many times as long as most took before, 5 s at least
//   tests = [{collective = "bandwidth", sizes = "1M", window = 8}, {collective = "pingpong", sizes = "8"}]
//   [[stage]]
//   name = "soak"
//   time = "5m"
//   blocking = false           # nodes that fail in it play in the later stages all the same
//   [[stage]]
//   name = "job"
//   command = ["mpirun", "--hostfile", "{hostfile}", "./train"]  # in place of a training
//   time = "10m"               # its deadline
#pragma once

#include <cstdint>
#include <string_view>

#include "harness/accept/acceptance.h"
#include "harness/floors.h"
#include "impl/types/status.h"

namespace tutti::harness::accept {

/// Errors: invalid_argument that names the line, what is wrong there, and the nearest right.
[[nodiscard]] Result<AcceptPlan> plan_from_toml(std::string_view text);

/// Errors: invalid_argument that names the size, the range and the nearest right one.
[[nodiscard]] Status check_message_size(std::int64_t bytes);

inline constexpr double kLeastMargin = 0.005, kMostMargin = 0.5;
inline constexpr std::int64_t kMostMessage = std::int64_t{1} << 30;
inline constexpr std::int64_t kMostWindow = 64;

}  // namespace tutti::harness::accept
