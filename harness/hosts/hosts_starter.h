// SPDX-License-Identifier: Apache-2.0
// HostsStarter: the ranks of a job on several hosts. It has one process on each of them (host_process.h), started by an
// agent such as ssh, or by itself on this host, and talks with it over TCP. In a job of a starter the host processes of
// other hosts come by themselves (joined_hosts.h). To the launcher the ranks look like children: it gets their
// messages, exits and states from here.
#pragma once

#include <chrono>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/hosts/agent_log.h"
#include "harness/hosts/frame_stream.h"
#include "harness/hosts/host_talk.h"
#include "harness/hosts/placed_job.h"
#include "harness/launch/children.h"
#include "harness/launch/job.h"
#include "harness/launch/rank_starter.h"
#include "impl/tcp/greeting.h"
#include "impl/tcp/secret.h"
#include "impl/tcp/socket.h"

namespace tutti::harness::hosts {

class HostsStarter final : public RankStarter {
 public:
  /// `across` outlives it.
  explicit HostsStarter(const JobAcross& across) : across_(across) {}
  ~HostsStarter() override { HostsStarter::end(); }
  HostsStarter(const HostsStarter&) = delete;
  HostsStarter& operator=(const HostsStarter&) = delete;

  Status start(const Job& job, const std::string& control_name, const std::string& directory, int log) override;
  [[nodiscard]] RankPlace place_of(int rank) const override;
  [[nodiscard]] bool spans_hosts() const override { return true; }
  [[nodiscard]] std::string host_name(int rank) const override;
  [[nodiscard]] std::optional<char> state_of(int rank) const override;
  [[nodiscard]] std::vector<RankStanding> standings() const override { return standings_; }
  void add_to(std::vector<pollfd>& set) const override;
  void service(Connections::Events& events, const Board& board) override;
  void reap() override;
  [[nodiscard]] bool have_all_exited() const override;
  [[nodiscard]] const std::vector<Child>& all() const override { return children_; }
  [[nodiscard]] std::vector<pid_t> members() const override { return command_.members(); }
  void end() override;

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct HostProcess {
    const JobHost* host = nullptr;
    int first = 0;  ///< rank
    bool is_here = false;
    pid_t agent = 0;
    std::optional<int> agent_status;
    std::chrono::steady_clock::time_point agent_ended{};  ///< when it was noticed
    Descriptor input;  ///< the agent's stdin; at its end the host process ends its ranks
    AgentLog log;
    FrameStream stream;
    bool has_come = false;
    std::optional<HostHello> hello;
    bool awaits_ranks = false;
    bool has_ended = false;
    bool is_lost = false;
    TimePoint heard;  ///< the last time; its silence counts once all have come
  };
  /// A connection whose other end has not yet proved that it is of this job.
  struct Guest {
    Descriptor socket;
    tcp::Greeting greeting;
    TimePoint since;
  };

  [[nodiscard]] const HostProcess& process_of(int rank) const;
  /// The interface in an invitation; empty: the host process finds it.
  [[nodiscard]] std::string interface_of_invited() const;
  Status start_process(HostProcess& process, const std::vector<std::string>& program);
  void let_in();
  void greet();
  void admit(Guest& guest);
  void hear(HostProcess& process, Connections::Events& events, const Board& board);
  void take(HostProcess& process, const Frame& frame, Connections::Events& events, const Board& board);
  /// A message that begins with a rank. Errors: io, invalid_argument, if it cannot be read.
  Status take_event(const HostProcess& process, const Frame& frame, Connections::Events& events);
  /// Puts what the host reports of its ranks on the board. Errors: those of reports_from_lines.
  Status take_reports(const HostProcess& process, std::string_view lines, const Board& board);
  /// More than one host's ranks if several hosts are one machine. Requires: all have come.
  [[nodiscard]] std::map<std::string, int> ranks_on_kernels() const;
  /// Each host as it describes itself. Requires: all have come.
  [[nodiscard]] std::vector<HostInfo> described() const;
  /// Gives each host the job. Requires: all have come.
  void give_jobs();
  /// Requires: all hosts await their ranks. Errors: see spawn.
  Status start_command();
  /// The time for which this process itself stood still is no silence of others.
  void forgive_own_standstill();
  void look_for_losses(Connections::Events& events);
  /// All that have not come, in one error.
  void lose_absent(Connections::Events& events);
  void lose(HostProcess& process, const Status& why, Connections::Events& events);
  [[nodiscard]] bool have_all_come() const;
  [[nodiscard]] bool do_all_await_ranks() const;
  [[nodiscard]] std::string name_of(const HostProcess& process) const;
  [[nodiscard]] std::string agent_of(const HostProcess& process) const;
  void hand_on_logs();

  const JobAcross& across_;
  const Job* job_ = nullptr;
  tcp::Secret key_;  ///< of the job
  tcp::Listener listener_;
  std::string control_;  ///< see control_name_of
  std::vector<HostProcess> processes_;
  std::vector<Child> children_;          ///< [rank], and behind them the start command
  std::vector<char> states_;             ///< [rank]
  std::vector<RankStanding> standings_;  ///< [rank], once one of them has waited for long
  std::list<Guest> guests_;
  Children command_;  ///< which starts the ranks, if the job has one
  std::string address_, directory_;
  int log_ = -1;
  bool has_given_jobs_ = false;
  bool is_ending_ = false;
  TimePoint started_, told_, served_;
};

}  // namespace tutti::harness::hosts
