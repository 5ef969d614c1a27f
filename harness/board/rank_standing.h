// SPDX-License-Identifier: Apache-2.0
// The place of a rank in a job that hangs, as the memory shows it that the ranks of a host share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "harness/floors.h"
#include "impl/types/status.h"

namespace tutti::harness::board {

/// The operation of an own communicator in which a rank waits, and the peer for which it waits.
struct RankWait {
  std::uint64_t operation = 0;             ///< its number, from 1; 0: a send or a receive
  std::optional<std::int64_t> step = {};   ///< of the operation's schedule
  std::optional<int> peer = {};            ///< the rank that it waits for
  std::optional<std::int64_t> bytes = {};  ///< of what it waits for

  bool operator==(const RankWait&) const = default;
};

struct RankStanding {
  std::string text;                   ///< follows the rank's own line
  std::optional<RankWait> wait = {};  ///< empty: it is not known to wait

  bool operator==(const RankStanding&) const = default;
};

[[nodiscard]] std::string to_json(const RankStanding& standing);
/// Errors: invalid_argument.
[[nodiscard]] Result<RankStanding> standing_from_json(std::string_view text);

}  // namespace tutti::harness::board
