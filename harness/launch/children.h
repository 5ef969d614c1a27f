// SPDX-License-Identifier: Apache-2.0
// Children: the processes of one launch. They are the ranks themselves, or one start command (an mpirun) and the ranks
// that descend from it.
//
// Every process of the launch can be found. It is in the session of a process that this launcher started, or it has the
// launcher's control name in its environment. While a start command runs, this process adopts orphans. So ranks can be
// waited for even when the command died before them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <sys/types.h>
#include <vector>

#include "harness/launch/job.h"
#include "harness/launch/rank_starter.h"

namespace tutti::harness::launch {

class Children : public RankStarter {
 public:
  Children() = default;
  ~Children() override { Children::end(); }
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  Status start(const Job& job, const std::string& control_name, const std::string& directory, int log) override;
  /// Starts a job that has a start command, which `values` fill. With `values.hosts` it starts ranks on these hosts.
  Status start_command(const Job& job, const std::string& control_name, const StartValues& values, int log);
  [[nodiscard]] RankPlace place_of(int rank) const override { return {.host = 0, .local = rank}; }
  /// Reads the stacks of the ranks.
  [[nodiscard]] Recall recall(std::span<const pid_t> pids, Connections::Events& events, const Board& board,
                              const Interrupts& interrupts) override;
  void reap() override;
  [[nodiscard]] bool have_all_exited() const override;
  [[nodiscard]] const std::vector<Child>& all() const override { return children_; }
  [[nodiscard]] std::vector<pid_t> members() const override;
  /// The process of a rank for whoever looks at it: of a child that has been waited for, kEnded; `come` if the rank is
  /// none of these children.
  [[nodiscard]] pid_t process_of(int rank, pid_t come) const;
  void end() override;

 private:
  void kill_ranks();
  void end_command();
  void adopt_orphans(bool is_on);

  std::vector<Child> children_;
  std::string control_name_;
  bool was_adopting_ = false;
  bool has_command_ = false;
  bool leaves_others_ = false;  ///< ranks that a starter has started
};

/// What the last words of a start command say about the first rank that ended badly, if they do.
struct CommandVerdict {
  int rank = -1;
  pid_t pid = 0;  ///< of the rank, if the command named it in place of the rank
  Ending how = Ending::exited;
  int number = 0;  ///< signal or exit code
};
[[nodiscard]] std::optional<CommandVerdict> parse_command_verdict(const std::string& log);
/// The ranks in the order in which the command saw them end, well or badly; none if it does not report them.
[[nodiscard]] std::vector<int> parse_command_ends(const std::string& log);

}  // namespace tutti::harness::launch
