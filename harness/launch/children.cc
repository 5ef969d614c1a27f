// SPDX-License-Identifier: Apache-2.0
#include "harness/launch/children.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/machine/allowed_cores.h"
#include "harness/process/agent.h"
#include "harness/process/processes.h"
#include "harness/process/spawn.h"
#include "harness/process/waits.h"

namespace tutti::harness::launch {
namespace {

using namespace std::chrono_literals;

// A start command ends within milliseconds; it is given a while to tidy up, since its ranks are dead already.
constexpr auto kCommandPatience = 700ms;
constexpr auto kEndPatience = 1000ms;
constexpr const char* kControl = "TUTTI_CONTROL";

}  // namespace

Status Children::start(const Job& job, const std::string& control_name, const std::string& directory, int log) {
  if (job.start) {
    const bool is_crowded = job.ranks > static_cast<int>(allowed_cores().size());
    return start_command(job, control_name, {.ranks = job.ranks, .directory = directory, .is_crowded = is_crowded},
                         log);
  }
  control_name_ = control_name;
  leaves_others_ = job.awaits_others;
  SpawnRequest request;
  request.output = log;
  request.environment = {fmt::format("{}={}", kControl, control_name), "TUTTI_RANK"};
  request.command = {resolve_program(job.program)};
  request.command.insert(request.command.end(), job.arguments.begin(), job.arguments.end());
  request.death_signal = SIGKILL;
  request.environment.insert(request.environment.begin(), job.environment.begin(), job.environment.end());
  const int processes = job.ranks_as->is_process ? ranks_here(job) : 1;
  for (int rank = job.first_rank; rank < job.first_rank + processes; ++rank) {
    request.environment.back() = fmt::format("TUTTI_RANK={}", rank);
    TUTTI_ASSIGN_OR_RETURN(const pid_t pid, spawn(request));
    children_.push_back({.pid = pid, .rank = rank, .wait_status = {}});
  }
  return Status();
}

Status Children::start_command(const Job& job, const std::string& control_name, const StartValues& values, int log) {
  control_name_ = control_name;
  has_command_ = true;
  StartCommand start = filled(*job.start, values);
  adopt_orphans(true);
  SpawnRequest request;
  request.output = log;
  request.environment = {fmt::format("{}={}", kControl, control_name), "TUTTI_RANK"};
  request.command = std::move(values.hosts.empty() ? start.words : start.across);
  request.command.push_back(resolve_program(job.program));
  request.command.insert(request.command.end(), job.arguments.begin(), job.arguments.end());
  request.environment.insert(request.environment.end(), start.environment.begin(), start.environment.end());
  if (values.are_pretended) {
    request.environment.insert(request.environment.end(), start.pretended.begin(), start.pretended.end());
  }
  request.environment.push_back("TMPDIR=" + values.directory);
  // A start command that names them hands them on to other hosts. There they are set, even if to nothing.
  for (const char* variable : {kBackendFolders, kTransportFolders}) {
    request.environment.push_back(fmt::format("{}={}", variable, folders_in(variable)));
  }
  request.death_signal = SIGTERM;  // upon which it kills its ranks, stopped ones included
  TUTTI_ASSIGN_OR_RETURN(const pid_t pid, spawn(request));
  children_.push_back({.pid = pid, .rank = -1, .wait_status = {}});
  return Status();
}

void Children::adopt_orphans(bool is_on) {
  if (is_on) {
    int before = 0;
    ::prctl(PR_GET_CHILD_SUBREAPER, &before);
    was_adopting_ = before != 0;
  }
  ::prctl(PR_SET_CHILD_SUBREAPER, is_on || was_adopting_ ? 1 : 0);
}

void Children::reap() {
  for (Child& child : children_) {
    int status = 0;
    if (!child.wait_status && ::waitpid(child.pid, &status, WNOHANG) == child.pid) child.wait_status = status;
  }
}

bool Children::have_all_exited() const {
  return std::all_of(children_.begin(), children_.end(),
                     [](const Child& child) { return child.wait_status.has_value(); });
}

std::vector<pid_t> Children::members() const {
  std::vector<pid_t> found;
  const auto is_session = [&](pid_t session) {
    return std::any_of(children_.begin(), children_.end(), [&](const Child& child) { return child.pid == session; });
  };
  for (const ProcessInfo& process : all_processes()) {
    if (process.pid == ::getpid()) continue;
    // Ranks that a starter has started end by themselves, with the job's exit code, unless they are stopped.
    const bool may_be_rank = !leaves_others_ || process.state == 'T';
    if (is_session(process.session) || (may_be_rank && environment_of(process.pid, kControl) == control_name_))
      found.push_back(process.pid);
  }
  return found;
}

pid_t Children::process_of(int rank, pid_t come) const {
  const auto child = std::ranges::find(children_, rank, &Child::rank);
  if (child == children_.end()) return come;
  return child->wait_status ? kEnded : child->pid;
}

Recall Children::recall(std::span<const pid_t> pids, Connections::Events& /*events*/, const Board& /*board*/,
                        const Interrupts& interrupts) {
  const auto pid_of = [&](int rank) { return process_of(rank, pids[static_cast<std::size_t>(rank)]); };
  return {.calls = {},
          .stacks = stacks_of(static_cast<int>(pids.size()), kStacksPatience, pid_of, interrupts),
          .silent = {}};
}

void Children::kill_ranks() {
  for (const Child& child : children_) {
    if (child.rank >= 0 && !child.wait_status) ::kill(child.pid, SIGKILL);
  }
  for (const pid_t pid : members()) {
    const bool is_child = std::any_of(children_.begin(), children_.end(), [&](const Child& c) { return c.pid == pid; });
    if (!is_child) ::kill(pid, SIGKILL);  // works on stopped processes as well
  }
}

void Children::end_command() {
  Child& command = children_.front();
  if (command.wait_status) return;
  ::kill(command.pid, SIGTERM);
  ::kill(command.pid, SIGCONT);
  const bool has_ended = nap_until(kCommandPatience, [&] {
    reap();
    return command.wait_status.has_value();
  });
  if (!has_ended) ::kill(-command.pid, SIGKILL);
}

void Children::end() {
  if (!children_.empty()) {
    kill_ranks();
    if (has_command_) end_command();
    nap_until(kEndPatience, [this] {
      reap();
      const std::vector<pid_t> left = members();
      for (const pid_t pid : left) {
        ::kill(pid, SIGKILL);
        const bool is_child =
            std::any_of(children_.begin(), children_.end(), [&](const Child& c) { return c.pid == pid; });
        if (!is_child) ::waitpid(pid, nullptr, WNOHANG);  // an orphan that we adopted; otherwise no child of ours
      }
      return left.empty() && have_all_exited();
    });
    children_.clear();
  }
  if (has_command_) adopt_orphans(false);
  has_command_ = false;
}

}  // namespace tutti::harness::launch
