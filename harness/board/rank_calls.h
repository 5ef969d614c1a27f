// SPDX-License-Identifier: Apache-2.0
// The last calls of the ranks of a job that hangs, and their text for a launcher on another host.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/board/rank_standing.h"
#include "harness/floors.h"
#include "impl/communicator/diagnosis.h"
#include "impl/types/status.h"

namespace tutti::harness::board {

/// By rank, the oldest call first. Of a rank that is not there nothing is known.
using CallsOfRanks = std::map<int, std::vector<StartedCall>>;

/// What the memory that ranks share shows of each rank of the job, [rank]. Empty: it shows nothing, or cannot be read.
struct RanksSeen {
  std::vector<RankStanding> standings = {};
  std::vector<std::vector<StartedCall>> calls = {};
};

inline constexpr std::size_t kMostCalls = 64;       ///< of a rank
inline constexpr std::size_t kMostCallBytes = 128;  ///< of a call's line

/// A line for each call: its number, `completed` or `started`, the collective, the count and the dtype. All else of the
/// call is left out, as is the count of a v form.
[[nodiscard]] std::string call_lines(std::span<const StartedCall> calls);
/// Back again. Errors: invalid_argument that names the line and its field, or more than kMostCalls lines, or a line of
/// more than kMostCallBytes.
[[nodiscard]] Result<std::vector<StartedCall>> calls_from_lines(std::string_view lines);

}  // namespace tutti::harness::board
