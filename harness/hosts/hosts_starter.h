// SPDX-License-Identifier: Apache-2.0
// HostsStarter: the ranks of one group on several hosts, each of which has a process of the launcher
// (host_processes.h). To the launcher the ranks look like children: it gets their messages, exits and states from here.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/hosts/host_processes.h"
#include "harness/hosts/host_talk.h"
#include "harness/hosts/placed_job.h"
#include "harness/launch/children.h"
#include "harness/launch/job.h"
#include "harness/launch/rank_starter.h"

namespace tutti::harness::hosts {

class HostsStarter final : public RankStarter {
 public:
  /// The hosts are of this job alone: they come and go with it. `across` outlives it.
  explicit HostsStarter(const JobAcross& across)
      : across_(across), own_(std::make_unique<HostProcesses>()), processes_(*own_) {}
  /// Over hosts that have come already, and stay: of each in `across` its number in `processes`. Whoever has these
  /// calls their service before each of this. Both outlive it.
  HostsStarter(const JobAcross& across, HostProcesses& processes, std::vector<int> numbers)
      : across_(across), processes_(processes), numbers_(std::move(numbers)) {}
  ~HostsStarter() override {
    HostsStarter::end();
    if (group_ >= 0) processes_.close_group(group_);
  }
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
  [[nodiscard]] Recall recall(std::span<const pid_t> pids, Connections::Events& events, const Board& board,
                              const Interrupts& interrupts) override;
  void reap() override;
  [[nodiscard]] bool have_all_exited() const override;
  [[nodiscard]] const std::vector<Child>& all() const override { return children_; }
  [[nodiscard]] std::vector<pid_t> members() const override { return command_.members(); }
  void end() override;

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  /// Whether a host was asked what its ranks called last; `done`: nothing more of that is taken.
  enum class Recalled : std::uint8_t { not_asked, asked, done };
  struct Member {  ///< a host of the group
    const JobHost* host = nullptr;
    int number = 0;  ///< among all hosts
    int first = 0;   ///< rank
    bool awaits_ranks = false;
    bool is_lost = false;  ///< and that has been told
    Recalled recalled = Recalled::not_asked;
  };
  /// What hosts have told of their ranks, by rank, once they were asked. The first that is told of a rank counts.
  struct Told {
    std::map<int, Result<std::vector<StartedCall>>> calls;
    std::map<int, std::string> stacks;
    std::size_t stack_bytes = 0;
  };

  void make_members();
  /// At which its ranks listen.
  [[nodiscard]] const std::string& address_of(const Member& member) const;
  [[nodiscard]] const Member& member_of(int rank) const;
  [[nodiscard]] int number_of(const Member& member) const { return static_cast<int>(&member - members_.data()); }
  [[nodiscard]] bool was_heard(const Member& member, std::chrono::nanoseconds within) const;
  void send(const Member& member, const Frame& frame) { processes_.send(member.number, group_, frame); }
  /// Waits a moment for what hosts say, and takes it from their connections.
  void listen();
  /// All messages that have come.
  void take_news(Connections::Events& events, const Board& board);
  /// Errors: io, invalid_argument, if it cannot be read.
  Status take(Member& member, const Frame& frame, Connections::Events& events, const Board& board);
  /// A message that begins with a rank of its host. Errors: io, if it cannot be read.
  [[nodiscard]] static Result<RankEvent> event_of(const Member& member, const Frame& frame);
  /// What such a message says. Errors: io, invalid_argument, if it cannot be read.
  Status take_event(const Member& member, const Frame& frame, Connections::Events& events);
  /// What a rank called last, its stacks, or that this was all. Errors: io, if its rank cannot be read, or if that was
  /// not asked.
  Status take_recalled(Member& member, const Frame& frame);
  void take_stack(int rank, std::string_view told);
  [[nodiscard]] bool is_gone(const Member& member) const {
    return processes_.loss(member.number) || processes_.has_left(member.number);
  }
  /// Whether a host that was asked `since` may still tell what its ranks called last, or their stacks.
  [[nodiscard]] bool may_recall(const Member& member, TimePoint since) const;
  /// Why the host has not told all calls that were asked `since`.
  [[nodiscard]] std::string why_silent(const Member& member, TimePoint since) const;
  [[nodiscard]] bool has_told_calls(const Member& member) const;
  /// Moves what the host has told of its calls to `recall`, and names the ranks whose calls are missing.
  void hand_on_calls(const Member& member, TimePoint since, Recall& recall);
  /// The same of the stacks of all hosts.
  void hand_on_stacks(Recall& recall);
  /// Puts what the host reports of its ranks on the board. Errors: those of reports_from_lines.
  Status take_reports(const Member& member, std::string_view lines, const Board& board);
  /// More than one host's ranks if several hosts are one machine. Requires: all have come.
  [[nodiscard]] std::map<std::string, int> ranks_on_kernels() const;
  /// Each host as it describes itself. Requires: all have come.
  [[nodiscard]] std::vector<HostInfo> described() const;
  /// Asks the first host where the others meet it. Requires: all have come.
  void ask();
  /// Gives each host the job. Requires: all have come.
  void give_jobs(const MeetingPlace& place);
  /// Requires: all hosts await their ranks. Errors: see spawn.
  Status start_command();
  void look_for_losses(Connections::Events& events);
  /// All that have not come, in one error.
  void lose_absent(Connections::Events& events);
  void lose(Member& member, const Status& why, Connections::Events& events);
  /// Ends the group on hosts that stay.
  void end_group();
  [[nodiscard]] bool have_all_come() const;
  [[nodiscard]] bool do_all_await_ranks() const;
  [[nodiscard]] std::string name_of(const Member& member) const;

  const JobAcross& across_;
  std::unique_ptr<HostProcesses> own_;  ///< null: they stay
  HostProcesses& processes_;
  std::vector<int> numbers_;
  int group_ = -1;
  const Job* job_ = nullptr;
  std::string control_;  ///< see control_name_of
  std::vector<Member> members_;
  std::vector<Child> children_;          ///< [rank], and behind them the start command
  std::vector<char> states_;             ///< [rank]
  std::vector<RankStanding> standings_;  ///< [rank], once one of them has waited for long
  Told told_;
  Children command_;  ///< which starts the ranks, if the job has one
  std::string directory_;
  int log_ = -1;
  bool has_asked_ = false, has_given_jobs_ = false;
  bool is_ending_ = false;
  TimePoint started_, asked_;
};

}  // namespace tutti::harness::hosts
