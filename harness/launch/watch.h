// SPDX-License-Identifier: Apache-2.0
// Which rank is to blame when a job stands still (judge_hang). A rank announces each operation on the board before it
// enters. A rank whose announcement is pending for longer than the patience is a victim or the culprit. The culprit is
// the first of these: a rank that is stopped; a rank that is gone; the rank that has announced the fewest operations,
// an idle one before one that waits. If a process sees only the ranks of its own host and all of these wait, the
// culprit is the rank of another host at the end of the chain of waits.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <sys/types.h>
#include <vector>

#include "harness/board/board.h"
#include "harness/board/rank_standing.h"
#include "harness/launch/job.h"
#include "harness/machine/standstill.h"

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
  int awaited = -1;  ///< in an exchange: the thread that runs ranks whose page is awaited; -1: none is
};

struct Blame {
  Ending how = Ending::hung;  ///< or stopped; or exited, of a rank that is gone: another finding says why
  int rank = -1;              ///< -1: all ranks stand in the same operation, or it is not known
  std::string text;
};

using CaseName = std::function<std::string(std::uint32_t)>;

/// Where the ranks of a job are of which a process sees only those of its own host.
struct HostsInView {
  std::vector<int> host_of = {};             ///< [rank]
  std::vector<std::string> host_names = {};  ///< [host]
  int own_host = 0;
  /// The rank that each late rank awaits: of this host, and what other hosts have lately reported.
  std::map<int, int> awaited = {};
};

/// What a process knows of a job that may stand still.
struct HangScene {
  std::span<const RankView> ranks;    ///< that it sees
  std::chrono::nanoseconds patience;  ///< with each announced operation, beyond what was granted to it
  /// Beyond that, before the judge reports that all ranks wait, or that a rank of another host is to blame. Within it
  /// another process may find a better reason.
  std::chrono::nanoseconds more_patience = {};
  const HostsInView* hosts = nullptr;  ///< null: it sees all ranks
};

/// How long the oldest pending announcement on the board has been there, without what was granted to it. The time for
/// which the caller stood still does not count, here and in views.
[[nodiscard]] std::chrono::nanoseconds longest_wait(const Board& board, std::int64_t now_ns,
                                                    const Standstill& stood = {});
/// Views of all ranks; `pids` has one entry per rank.
[[nodiscard]] std::vector<RankView> view_ranks(const Board& board, std::span<const pid_t> pids, std::int64_t now_ns,
                                               const Standstill& stood = {});
/// The rank to blame. Nothing if no rank that the scene shows is late, or if it is too early.
[[nodiscard]] std::optional<Blame> judge_hang(const HangScene& scene, const CaseName& case_name);
/// Where it is: "in operation 3 (...)", "idle after operation 3 (...)", "before its first operation".
[[nodiscard]] std::string place_of(const RankView& view, const CaseName& case_name);
/// A line for each rank, each after a line break, those to blame first, and no more lines than can be read. It says
/// which operation the rank is in, since when, and what `standings` says of it.
[[nodiscard]] std::string describe_ranks(std::span<const RankView> ranks, const CaseName& case_name,
                                         std::span<const RankStanding> standings = {});

}  // namespace tutti::harness::launch
