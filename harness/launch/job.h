// SPDX-License-Identifier: Apache-2.0
// A job is P ranks of the hidden rank program. Job is what to start, Outcome and Ending are how it ended, Listener gets
// what the ranks send meanwhile. The launcher knows nothing of what is measured: the payload and the messages of the
// ranks are text.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/board/rank_calls.h"
#include "harness/board/rank_standing.h"
#include "harness/cases/ranks_as.h"
#include "harness/process/stacks.h"
#include "harness/process/start_command.h"
#include "impl/types/status.h"

namespace tutti::harness::launch {

class RankStarter;

/// A host of a job on several, as it describes itself.
struct HostInfo {
  std::string host;         ///< as the job names it
  std::string name;         ///< its own
  std::string description;  ///< describe_machine() of there, as JSON text
  std::string fingerprint;
};

struct Job {
  int ranks = 1;
  RanksAs ranks_as = RanksAs::processes;  ///< threads, tasks: one child process, which comes as rank 0
  /// Starts the ranks, which must be processes, in place of the own spawn.
  std::optional<StartCommand> start = {};
  std::vector<std::string> environment = {};  ///< "NAME=value", put over this process's own by the own spawn
  RankStarter* starter = nullptr;             ///< null: Children, on this host
  int first_rank = 0;                         ///< of those that are started, if other hosts have the rest
  int ranks_here = 0;                         ///< and how many they are; 0: all
  bool awaits_others = false;                 ///< a starter starts the other ranks, and they come by themselves
  std::string control = {};                   ///< the name at which ranks find this process; empty: one is drawn
  int control_socket = -1;                    ///< that listens there already, if it does
  /// If a starter has started the ranks: is called with a failure before any of them ends. Who has started them
  /// may end all processes, this one too, as soon as one has ended.
  std::function<void(const Status&)> tell = {};
  bool recalls = false;   ///< makes a Recall once ranks hang or stand still, or a host is lost
  std::string told = {};  ///< the arguments with which a rank that comes by itself must have been started
  std::string program = "/proc/self/exe";
  std::vector<std::string> arguments;                                    ///< after the program's name
  std::string payload;                                                   ///< given to every rank
  std::size_t domain_bytes = 0;                                          ///< shared memory besides the board; 0: none
  std::chrono::milliseconds timeout = std::chrono::seconds(60);          ///< of one announced operation
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(60);  ///< from the start to the last hello
  std::filesystem::path log;  ///< appended: output of ranks and of what started them; empty: kept in memory only
};

/// Ranks of the job that this process, or its start command, starts.
[[nodiscard]] inline int ranks_here(const Job& job) { return job.ranks_here > 0 ? job.ranks_here : job.ranks; }

enum class Ending : std::uint8_t {
  finished,         ///< every rank said bye and exited with 0
  exited,           ///< a rank (or its start command) ended before its time: `number` is its exit code
  killed,           ///< a rank (or its start command) was killed by signal `number`
  stopped,          ///< a rank was stopped (state T) for longer than the timeout
  hung,             ///< an announced operation lasted longer than the timeout
  said_error,       ///< a rank reported an error; `failure` has the code that it gave
  garbled,          ///< a rank sent something that is not a message
  lost_host,        ///< a host is gone, or never came
  never_connected,  ///< a rank did not say hello in time
  interrupted,      ///< this process got signal `number` (SIGINT, SIGTERM, SIGHUP)
};

[[nodiscard]] std::string_view to_string(Ending how);

/// What is still known of ranks that hang.
struct Recall {
  CallsOfRanks calls = {};               ///< of a job on several hosts; on one a Listener looks for itself
  std::vector<RankStack> stacks = {};    ///< by rank; empty: there is no eu-stack, or no host has told any
  std::vector<std::string> silent = {};  ///< ranks whose host has not told their calls: "host b (rank 1): why"
};

struct Outcome {
  bool ok = false;
  Ending how = Ending::finished;
  int failed_rank = -1;   ///< -1: none, or none that is known
  int number = 0;         ///< see Ending
  bool all_came = false;  ///< every rank has said hello
  bool is_told = false;   ///< Job::tell was called
  /// The case of the operation that the failed rank announced last, or all ranks if that rank is not known.
  std::optional<std::uint32_t> case_index = {};
  Status failure;             ///< one sentence that names the rank; code aborted, timeout, io, or what a rank gave
  std::string log_tail;       ///< last lines of the log of this launch; empty if ok
  std::string log_line = {};  ///< the line of that log that explains the failure best; empty: none does
  std::vector<RankStanding> standings = {};  ///< [rank] of a job that hung, if they are known
  std::optional<Recall> recall = {};         ///< made before the ranks were ended, see Job::recalls
};

/// Receives what the ranks of a running job send, in the order in which each rank sent it. Called in the launcher's
/// thread.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void on_message(int rank, std::string_view type, std::string_view text) = 0;
  /// Called once for a job on several hosts, when all hosts have come and before any message.
  virtual void on_hosts(const std::vector<HostInfo>& /*all*/) {}
  /// The name of a case in messages about hangs.
  [[nodiscard]] virtual std::string case_name(std::uint32_t index) const { return fmt::format("case {}", index); }
  /// What the shared memory of a job that hangs shows of each rank. Empty: nothing. `domain_fd` is -1 if the job has no
  /// domain.
  [[nodiscard]] virtual std::vector<RankStanding> standings(int /*domain_fd*/) const { return {}; }
};

}  // namespace tutti::harness::launch
