// SPDX-License-Identifier: Apache-2.0
// Which rank is to blame when a job stands still (find_culprit). A rank announces each operation on the board before it
// enters. A rank whose announcement is pending for longer than the timeout is a victim or the culprit. The culprit is
// the first of these: a rank that is stopped; a rank that is gone; the rank that has announced the fewest operations,
// an idle one before one that waits.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <sys/types.h>

#include "harness/board/board.h"
#include "harness/board/rank_standing.h"
#include "harness/launch/job.h"

namespace tutti::harness::launch {

/// One rank as the launcher sees it at one instant.
struct RankView {
  int rank = 0;
  pid_t pid = 0;
  std::string host = {};                  ///< where there are several hosts
  char state = 'S';                       ///< see ProcessInfo
  std::chrono::nanoseconds waited = {};   ///< since the announcement; 0: nothing is pending
  std::chrono::nanoseconds granted = {};  ///< to it, beyond the timeout
  std::uint64_t operation = 0;
  std::uint32_t case_index = 0;
  Activity activity = Activity::idle;
};

struct Blame {
  Ending how = Ending::hung;  ///< or stopped; or exited, of a rank that is gone: another finding says why
  int rank = -1;              ///< -1: all ranks stand in the same operation
  std::string text;
};

using CaseName = std::function<std::string(std::uint32_t)>;

/// How long the oldest pending announcement on the board has been there, without what was granted to it.
[[nodiscard]] std::chrono::nanoseconds longest_wait(const Board& board, std::int64_t now_ns);
/// Views of all ranks; `pids` has one entry per rank.
[[nodiscard]] std::vector<RankView> view_ranks(const Board& board, std::span<const pid_t> pids, std::int64_t now_ns);
/// Nothing if no rank has waited for longer than `timeout` and what was granted to it.
[[nodiscard]] std::optional<Blame> find_culprit(std::span<const RankView> ranks, std::chrono::nanoseconds timeout,
                                                const CaseName& case_name);
/// Where it is: "in operation 3 (...)", "idle after operation 3 (...)", "before its first operation".
[[nodiscard]] std::string place_of(const RankView& view, const CaseName& case_name);
/// A line for each rank, each after a line break, those to blame first, and no more lines than can be read. It says
/// which operation the rank is in, since when, and what `standings` says of it.
[[nodiscard]] std::string describe_ranks(std::span<const RankView> ranks, const CaseName& case_name,
                                         std::span<const RankStanding> standings = {});

}  // namespace tutti::harness::launch
