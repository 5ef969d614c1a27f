// SPDX-License-Identifier: Apache-2.0
// RunningJob: what the launcher knows of a running job from one tick to the next. Its steps are in launch.cc. weigh.cc
// tells from deaths, deadlines, the board and states of processes that a job has failed.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <poll.h>
#include <string>
#include <vector>

#include "harness/board/board.h"
#include "harness/board/segment.h"
#include "harness/launch/children.h"
#include "harness/launch/connections.h"
#include "harness/launch/finding.h"
#include "harness/launch/job.h"
#include "harness/launch/launch_log.h"
#include "harness/launch/watch.h"
#include "harness/machine/standstill.h"
#include "harness/process/interrupts.h"
#include "harness/process/leftovers.h"
#include "harness/process/private_directory.h"

namespace tutti::harness::launch {

using TimePoint = std::chrono::steady_clock::time_point;

class RunningJob : private Connections::Events {
 public:
  RunningJob(const Job& job, Listener& listener)
      : job_(job), listener_(listener), members_(static_cast<std::size_t>(job.ranks_as->is_process ? job.ranks : 1)) {}

  ~RunningJob() override { children_.end(); }
  RunningJob(const RunningJob&) = delete;
  RunningJob& operator=(const RunningJob&) = delete;

  /// Makes the segments and the socket and starts the processes. Errors: as `launch`.
  Status start();
  /// Appends what the next step waits for. Returns how long it may wait at most. Several jobs may share a loop.
  [[nodiscard]] std::chrono::milliseconds add_to(std::vector<pollfd>& set) const;
  /// Takes what has come. Returns the outcome once the job is over; then there is no other step.
  [[nodiscard]] std::optional<Outcome> step();
  /// The job has not ended within `most`, and is to end with the next steps: it hangs.
  void expire(std::chrono::milliseconds most);

 private:
  struct Member {  ///< what is at the other end of one connection
    pid_t pid = 0;
    bool has_said_hello = false;
    bool has_said_bye = false;
    bool is_gone = false;  ///< its connection has ended
  };

  void on_hello(int rank, pid_t pid) override;
  void on_frame(int rank, const Frame& frame) override;
  void on_closed(int rank) override;
  void on_garbage(int rank, pid_t pid, const std::string& what) override;
  void on_unfit(const Status& why) override;
  void on_lost_host(int first_rank, const Status& why) override;
  void on_hosts(const std::vector<HostInfo>& all) override;
  /// "rank 3 (pid 17)"; of a job on several hosts "rank 3 on b (pid 17)".
  [[nodiscard]] std::string who(int rank, pid_t pid) const;

  /// Notices if this process itself stood still since it was to go on: no rank is late by that time.
  void look_for_standstill();
  void weigh();
  void weigh_children();
  void weigh_command(const Child& command);
  [[nodiscard]] int rank_of(pid_t pid) const;  ///< -1: of none
  void weigh_deadlines();
  void weigh_board();
  /// The board's views of all ranks.
  [[nodiscard]] std::vector<RankView> views() const;
  /// The finding, with where its rank was: so a crash in a library's own code names the library.
  [[nodiscard]] Finding with_place(Finding finding) const;
  /// Where they stand, once all are there.
  [[nodiscard]] std::string rank_lines(std::span<const RankView> views);
  void weigh_states();
  /// Of a start command: ranks that have not said hello.
  void weigh_starting();
  void weigh_state(int rank, pid_t pid);
  void add(Finding finding);
  /// Of a rank whose connection has ended: how it ended, as long as this can be seen.
  void look_at_end();
  [[nodiscard]] bool is_member(int rank) const { return rank >= 0 && static_cast<std::size_t>(rank) < members_.size(); }
  [[nodiscard]] Member& member(int rank) { return members_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] bool is_decided() const;
  [[nodiscard]] bool all_said_hello() const;
  [[nodiscard]] bool all_said_bye() const;
  /// Asks what is still known of ranks that hang, unless they do not, or nobody wants to know.
  void recall(Outcome& outcome);
  void tell_failure(Outcome& outcome);
  Outcome conclude();
  /// The case that `rank` announced last; if it is -1, not known, the case that all ranks announced last.
  [[nodiscard]] std::optional<std::uint32_t> announced_case(int rank) const;

  const Job& job_;
  Listener& listener_;
  Interrupts interrupts_;
  LaunchLog log_;
  Descriptor payload_;
  Descriptor domain_;
  Descriptor board_segment_;
  Mapping board_memory_;
  std::optional<Board> board_;
  Connections connections_;
  std::vector<Member> members_;
  std::optional<Finding> finding_;
  std::vector<RankStanding> standings_;  ///< [rank], when they were last asked for
  bool is_over_ = false;                 ///< the verdict stands; messages are still handed on
  Standstill stood_;
  mutable std::int64_t due_ns_ = 0;  ///< when the next step is to begin at the latest; 0: not known
  TimePoint decide_by_;
  TimePoint started_;  ///< when the processes were started; on several hosts, when all of these had come
  std::optional<TimePoint> last_bye_;
  TimePoint next_state_look_;
  std::map<std::pair<int, pid_t>, TimePoint> stopped_since_;  ///< rank and process
  struct Sighting {
    pid_t pid = 0;
    TimePoint when = {};                  ///< a process of the rank was there
    std::optional<int> wait_status = {};  ///< once it has ended, if that could be seen
  };
  std::map<int, Sighting> sightings_;  ///< the last of each rank that a start command has started and that has not come
  std::optional<int> wait_status_;     ///< of the rank whose connection has ended
  PrivateDirectory directory_;
  Leftovers leftovers_;
  Children own_children_;
  // Ended before anything that they use.
  RankStarter& children_ = job_.starter != nullptr ? *job_.starter : static_cast<RankStarter&>(own_children_);
};

}  // namespace tutti::harness::launch
