// SPDX-License-Identifier: Apache-2.0
// Crew: host processes that stay while groups of ranks come and go over them. Each group is a job with an end of its
// own: one that fails ends no other. A host that does not come, or is lost, plays in no later group.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "harness/hosts/host_processes.h"
#include "harness/hosts/placed_job.h"
#include "harness/launch/job.h"
#include "harness/launch/launch_log.h"
#include "harness/process/interrupts.h"
#include "impl/types/status.h"

namespace tutti::harness::hosts {

/// The ranks that a group has on one host.
struct CrewMember {
  int host = 0;  ///< among those of the crew
  int ranks = 1;
  std::size_t domain_bytes = 0;
};

struct CrewGroup {
  /// Ranks, payload, arguments and timeout are of the group. A start command starts the ranks of
  /// this group alone. Requires: the job does not recall, since other groups would wait for that.
  Job job;
  std::vector<CrewMember> members;
  int rail = -1;  ///< see JobAcross
  /// From its start to its end, beyond which the group is over; the timeout of one operation may be shorter.
  std::chrono::milliseconds deadline = std::chrono::hours(1);
  Listener* listener = nullptr;
};

class Crew {
 public:
  Crew() = default;
  ~Crew() { end(); }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  /// Starts the process of each host, all at once, and waits until each has come, is lost, or `patience` is over. The
  /// hosts that have not come by then are lost. Errors: those of HostProcesses::start; aborted: it was interrupted.
  Status start(HostsRequest request, std::chrono::milliseconds patience);
  /// Why a host is lost, if it is.
  [[nodiscard]] const std::optional<Status>& loss(int host) const { return processes_.loss(host); }
  /// Plays all groups at once, and returns how each ended. No host is in two of them. Nothing of a group is left when
  /// it returns. SIGINT, SIGTERM and SIGHUP end all (Ending::interrupted), and those of every later call. Between two
  /// calls, or rests, no more than some seconds may pass: hosts leave a launcher that falls silent.
  [[nodiscard]] std::vector<Outcome> run(const std::vector<CrewGroup>& groups);
  /// Asks the examiners of all hosts that are not lost at once, each its question of `questions`, and waits for
  /// `patience` at most. Returns by host what its examiner has printed. Errors of a host: why it is lost, or has no
  /// answer; timeout. A host that has sent nothing for 10 s is not waited for. Errors: aborted: it was interrupted.
  /// Called once.
  [[nodiscard]] Result<std::vector<Result<std::string>>> examine(const std::vector<std::string>& questions,
                                                                 std::chrono::milliseconds patience);
  /// Lets that time go by, unless it is interrupted.
  void rest(std::chrono::milliseconds time);
  [[nodiscard]] bool is_interrupted() const { return interrupts_.signal() != 0; }
  /// Nothing is left on the hosts that are not lost.
  void end() { processes_.end(); }

  [[nodiscard]] std::size_t size() const { return processes_.size(); }
  /// What the host says of itself. Requires: it has come.
  [[nodiscard]] const HostHello& hello(int host) const { return *processes_.hello(host); }

 private:
  class Playing;

  /// Waits for what comes, at most `most`, and takes it.
  void go_on(std::chrono::milliseconds most);

  HostsRequest request_;
  Interrupts interrupts_;
  LaunchLog log_;  ///< what is printed on hosts that are in no group
  HostProcesses processes_;
};

}  // namespace tutti::harness::hosts
