// SPDX-License-Identifier: Apache-2.0
// RankStarter: what starts the ranks of a job, knows the host of each, and ends them. Children are
// processes of this host; HostsStarter has ranks on several.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <sys/types.h>
#include <vector>

#include "harness/board/board.h"
#include "harness/board/rank_place.h"
#include "harness/board/rank_standing.h"
#include "harness/launch/connections.h"
#include "harness/launch/job.h"
#include "harness/process/interrupts.h"
#include "impl/types/status.h"

namespace tutti::harness::launch {

struct Child {
  pid_t pid = 0;
  int rank = -1;  ///< -1: the start command
  std::optional<int> wait_status;
};

class RankStarter {
 public:
  virtual ~RankStarter() = default;

  /// Starts what `job` needs; `log` gets their output. A start command's files go to `directory`, which outlives them.
  /// Errors: see spawn; what was started before is ended.
  virtual Status start(const Job& job, const std::string& control_name, const std::string& directory, int log) = 0;
  /// The place of any rank of the job, also before it has started. Each rank receives its own.
  [[nodiscard]] virtual RankPlace place_of(int rank) const = 0;

  /// Whether the ranks are on several hosts, each of which listens for its own ranks.
  [[nodiscard]] virtual bool spans_hosts() const { return false; }
  /// The name of a rank's host. Empty: the job has one host.
  [[nodiscard]] virtual std::string host_name(int /*rank*/) const { return {}; }
  /// The state of a rank's process (ProcessInfo) on another host. Nothing: /proc of this host shows it.
  [[nodiscard]] virtual std::optional<char> state_of(int /*rank*/) const { return {}; }
  /// What the memory of other hosts shows of ranks that have waited for long. Empty: the domain of this host shows it.
  [[nodiscard]] virtual std::vector<RankStanding> standings() const { return {}; }
  /// What the ranks of other hosts say comes here: appends what to wait for, and hands on what has come. What they
  /// announce goes to `board`.
  virtual void add_to(std::vector<pollfd>& /*set*/) const {}
  virtual void service(Connections::Events& /*events*/, const Board& /*board*/) {}
  /// Finds out what the ranks called last, and where they are. `pids`: the processes that have come to this host,
  /// [rank]; see PidOfRank. What other hosts send meanwhile is handed on as by `service`. It takes 10 s at most on this
  /// host. It waits 12 s for other hosts, and 5 s for one that tells no calls. It ends at an interrupt. Called once.
  [[nodiscard]] virtual Recall recall(std::span<const pid_t> pids, Connections::Events& events, const Board& board,
                                      const Interrupts& interrupts) = 0;

  /// Waits, without blocking, for those that have ended.
  virtual void reap() = 0;
  [[nodiscard]] virtual bool have_all_exited() const = 0;
  [[nodiscard]] virtual const std::vector<Child>& all() const = 0;
  /// Live processes of the launch, the start command among them. Reads all of /proc: not for every tick.
  [[nodiscard]] virtual std::vector<pid_t> members() const = 0;

  /// Kills and reaps what is left, if anything. Takes at most about 2 s, mostly a few ms.
  virtual void end() = 0;
};

}  // namespace tutti::harness::launch
