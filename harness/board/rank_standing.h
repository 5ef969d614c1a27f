// SPDX-License-Identifier: Apache-2.0
// Where a rank of a job that hangs stands, as the memory says that it shares with others of its host.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "harness/floors.h"
#include "impl/types/status.h"

namespace tutti::harness::board {

/// In which operation of an own communicator a rank waits, and for whom.
struct RankWait {
  std::uint64_t operation = 0;             ///< its number, from 1; 0: a send or a receive
  std::optional<std::int64_t> step = {};   ///< of the operation's schedule
  std::optional<int> peer = {};            ///< the rank that it waits for
  std::optional<std::int64_t> bytes = {};  ///< of what it waits for

  bool operator==(const RankWait&) const = default;
};

struct RankStanding {
  std::string text;                   ///< follows the rank's own line
  std::optional<RankWait> wait = {};  ///< empty: it has not said that it waits

  bool operator==(const RankStanding&) const = default;
};

[[nodiscard]] std::string to_json(const RankStanding& standing);
/// Errors: invalid_argument.
[[nodiscard]] Result<RankStanding> standing_from_json(std::string_view text);

}  // namespace tutti::harness::board
