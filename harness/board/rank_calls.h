// SPDX-License-Identifier: Apache-2.0
// The last calls of the ranks of a job that hangs, and their text for a launcher on another host.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/floors.h"
#include "impl/communicator/diagnosis.h"
#include "impl/types/status.h"

namespace tutti::harness::board {

/// By rank, the oldest call first. Of a rank that is not there nothing is known.
using CallsOfRanks = std::map<int, std::vector<StartedCall>>;

inline constexpr std::size_t kMostCalls = 64;             ///< of a rank
inline constexpr std::size_t kMostCallBytes = 128;        ///< of a call's line
inline constexpr Count kMostCallCount = Count{1} << 48U;  ///< of a call: no memory has more elements

/// A line for each call: its number, `completed` or `started`, the collective, the count and the dtype. All else of the
/// call is left out, as is the count of a v form.
[[nodiscard]] std::string call_lines(std::span<const StartedCall> calls);
/// Back again. Errors: invalid_argument that names the line and its field, or a text that is too long: more than
/// kMostCalls lines or kMostCallBytes for each.
[[nodiscard]] Result<std::vector<StartedCall>> calls_from_lines(std::string_view lines);

}  // namespace tutti::harness::board
