// SPDX-License-Identifier: Apache-2.0
// A job of a starter without a launcher: the processes that mpirun, srun, torchrun or a script has started find each
// other (impl/bootstrap/meeting.h), share one memory for board and domain, and watch each other. A process alone is
// such a job too. On several hosts (met_across.h) each has a memory of its own, and a process one rank.
//
// As there is no launcher, each process has a thread that sleeps on the connections and looks at the board now and
// then. Three things end the job for all processes, by name: a process that ends without a word, an operation beyond
// its deadline, and the end of the starter. Process 0 learns of it first and tells the others.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "harness/board/board.h"
#include "harness/board/segment.h"
#include "harness/cases/topology.h"
#include "harness/hosts/frame_stream.h"
#include "harness/hosts/met_across.h"
#include "harness/launch/watch.h"
#include "harness/machine/memory.h"
#include "harness/machine/standstill.h"
#include "harness/process/starter.h"
#include "impl/bootstrap/meeting.h"
#include "impl/transports/domain.h"

namespace tutti::harness::hosts {

struct JoinRequest {
  World world;
  int ranks_here = 1;      ///< ranks of every process
  std::string arguments;   ///< of the command; processes with other ones are not of this job
  std::string build = {};  ///< the same on all hosts
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);  ///< of the meeting and of each operation
};

struct Participant {
  pid_t pid = 0;
  std::string hostname = {};
  std::vector<int> cores = {};  ///< that it may use
  MemoryLeft memory = {};       ///< before the meeting
  std::string kernel = {};      ///< see running_kernel
};

class JoinedJob {
 public:
  /// Errors: those of meet and of prepare_limits; mismatch where the processes' arguments or numbers of ranks differ.
  [[nodiscard]] static Result<std::unique_ptr<JoinedJob>> join(const JoinRequest& request);
  ~JoinedJob();
  JoinedJob(const JoinedJob&) = delete;
  JoinedJob& operator=(const JoinedJob&) = delete;

  [[nodiscard]] int process() const { return request_.world.process; }
  [[nodiscard]] const std::vector<Participant>& participants() const { return participants_; }
  [[nodiscard]] int ranks() const { return request_.world.processes * request_.ranks_here; }
  [[nodiscard]] int ranks_here() const { return request_.ranks_here; }
  [[nodiscard]] int first_rank() const { return process() * request_.ranks_here; }  ///< of this process
  [[nodiscard]] Board board() const;
  /// The domain of all ranks as this process sees it, of the best transport for them.
  [[nodiscard]] Result<std::unique_ptr<Domain>> open_domain() const;

  /// Null if all processes are on one host.
  [[nodiscard]] const MetAcross* across() const { return across_ ? &*across_ : nullptr; }
  /// By rank; all 0 on one host.
  [[nodiscard]] std::vector<int> host_of_ranks() const;

  /// The cores that the processes on this machine may use, rising. Two hosts of one kernel are one machine.
  [[nodiscard]] std::vector<int> cores() const;
  /// Whether each process of this machine may use all of its cores.
  [[nodiscard]] bool shares_cores() const;
  /// The number of ranks on this machine.
  [[nodiscard]] int ranks_on_cores() const;
  /// The number of ranks on this machine that come before those of this process.
  [[nodiscard]] int ranks_before_on_cores() const;
  /// The least memory that a process has left. The same in all processes.
  [[nodiscard]] MemoryLeft memory_left() const;

  struct Watch {
    CaseName case_name;
    /// What is known about each rank besides the board; may be empty.
    std::function<std::vector<RankStanding>()> standings;
    /// Called once, in a thread of its own, when the job is lost. It should print and exit, for the ranks of this
    /// process may never come back.
    std::function<void(const Status& why)> on_lost;
  };
  /// Begins to watch.
  void watch(Watch watch);
  /// finish: this process has done its ranks. fail: it gives up, and the others end with its reason. Both end the
  /// watch.
  void finish();
  void fail(const Status& why);
  /// Whether this process prints what ends the job: under mpirun the first that asks, elsewhere each. Another one waits
  /// for a moment, since mpirun ends the first as soon as one has failed.
  [[nodiscard]] bool is_first_to_tell() const;
  /// Kills the process that this one has found to be stopped, in a job of one host that has a starter.
  /// mpiexec of MPICH would wait for it without end. Call it once the failure has been printed.
  void end_stopped() const;

 private:
  explicit JoinedJob(const JoinRequest& request) : request_(request) {}
  [[nodiscard]] bool is_alone() const { return request_.world.processes == 1; }
  /// Makes `topology_`. Requires: the processes of several hosts have met.
  Status place_ranks();
  [[nodiscard]] std::size_t board_offset() const;
  [[nodiscard]] std::size_t told_offset() const;
  [[nodiscard]] std::size_t memory_bytes() const;
  Status introduce(const std::vector<Introduction>& all);
  /// Those of several hosts meet; then those of this host do.
  Status meet_others(const std::string& text);
  /// The processes of this host, or all, share one memory.
  Status meet_here(const World& here, const std::string& text, bool introduces);
  [[nodiscard]] bool is_on_own_kernel(const Participant& one) const;
  /// Process 0 of those that share this one's memory.
  [[nodiscard]] std::size_t first_here() const {
    return across_ ? static_cast<std::size_t>(request_.world.first_here()) : 0;
  }

  /// Whether this is the first process of its host.
  [[nodiscard]] bool is_first_here() const;
  void watch_until_stopped();
  /// Takes what has come over the connections. The first reason to end the job.
  Status listen_to_all();
  [[nodiscard]] Status look_at_board();
  void note_stopped(const Blame& blame, std::span<const RankView> views);
  /// Where the ranks of a job on several hosts are. No rank is awaited yet.
  [[nodiscard]] HostsInView hosts_in_view() const;
  /// Adds the ranks for which ranks of this host wait, and sends them to process 0. Adds what other hosts sent lately.
  void add_awaited(std::span<const RankView> views, std::span<const RankStanding> standings,
                   std::map<int, int>& awaited);
  /// Errors: those of awaited_from_lines.
  Status take_awaited(std::string_view lines);
  void tell_all(const Frame& frame);
  [[nodiscard]] std::string name_of(std::size_t process) const;
  [[nodiscard]] Status under_name_of(std::size_t process, const Status& why) const;

  struct Link {
    Descriptor socket;        ///< of this host; not open: `stream` is
    FrameStream stream;       ///< to another host
    std::size_t process = 0;  ///< at the other end
    bool passes_on = false;   ///< its messages name the rank that they are about
    FrameReader reader = {};
    bool has_said_bye = false;
    [[nodiscard]] bool is_open() const { return socket.is_open() || stream.is_open(); }
    [[nodiscard]] int descriptor() const { return socket.is_open() ? socket.get() : stream.descriptor(); }
    /// The next frame, or nothing now. Errors: io.
    Result<std::optional<Frame>> next();
  };
  /// The reason to end the job, if it has one.
  Status hear(Link& link, const Frame& frame);

  JoinRequest request_;
  std::optional<MetAcross> across_;
  std::optional<Topology> topology_;  ///< of a job that has met
  std::vector<Participant> participants_;
  Descriptor memory_;
  Mapping mapping_;
  std::vector<Link> links_;
  /// Process 0's: for which rank a late rank of another host waits, and when that message came.
  struct Awaited {
    int peer = -1;
    std::int64_t told_ns = 0;
  };
  std::map<int, Awaited> awaited_elsewhere_;
  Watch watch_;
  Starter starter_;
  Standstill stood_;
  std::optional<pid_t> stopped_;  ///< the process that look_at_board has found to be stopped
  std::mutex sending_;
  Descriptor stop_;  ///< an eventfd: readable when the watch is to end
  std::thread watcher_;
};

}  // namespace tutti::harness::hosts
