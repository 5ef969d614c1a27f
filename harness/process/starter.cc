// SPDX-License-Identifier: Apache-2.0
#include "harness/process/starter.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <sched.h>
#include <string>
#include <string_view>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "harness/process/processes.h"
#include "harness/process/waits.h"

extern char** environ;

namespace tutti::harness::process {
namespace {

/// Each names a job, or a place in it, to those that belong to it. A script that sets RANK itself is not waited for: it
/// may end before its processes.
constexpr std::array kJobVariables{"PMIX_NAMESPACE", "PMI_RANK", "TORCHELASTIC_RUN_ID", "SLURM_STEP_ID"};

/// What mpirun and torchrun set. Of OMPI_MCA_ only their own: the others are the user's.
constexpr std::array<std::string_view, 22> kOfStarters{"OMPI_COMM_WORLD_",
                                                       "OMPI_APP_CTX_NUM_PROCS",
                                                       "OMPI_COMMAND",
                                                       "OMPI_ARGV",
                                                       "OMPI_FILE_LOCATION",
                                                       "OMPI_FIRST_RANKS",
                                                       "OMPI_NUM_APP_CTX",
                                                       "OMPI_UNIVERSE_",
                                                       "OMPI_MCA_orte_",
                                                       "OMPI_MCA_ess",
                                                       "OMPI_MCA_pmix",
                                                       "OMPI_MCA_initial_wdir",
                                                       "PMIX_",
                                                       "PMI_",
                                                       "PRTE_",
                                                       "HYDI_",
                                                       "MPI_LOCAL",
                                                       "RANK=",
                                                       "WORLD_SIZE=",
                                                       "LOCAL_RANK=",
                                                       "LOCAL_WORLD_SIZE=",
                                                       "TORCHELASTIC_"};

/// What Open MPI's mpirun tells its processes if their cores were chosen.
constexpr std::array kChosenBindings{"OMPI_MCA_hwloc_base_binding_policy", "OMPI_MCA_hwloc_base_cpu_set",
                                     "OMPI_MCA_hwloc_base_cpu_list", "OMPI_MCA_rmaps_base_cpus_per_rank"};

pid_t find_starter() {
  for (const char* name : kJobVariables) {
    const char* const mine = std::getenv(name);
    if (mine == nullptr || *mine == '\0') continue;
    constexpr int kMostAncestors = 64;
    pid_t pid = ::getppid();
    for (int i = 0; i < kMostAncestors && pid > 1; ++i) {  // the first process ends with all others
      if (environment_of(pid, name) != std::string(mine)) return pid;
      const auto info = process_info(pid);
      pid = info ? info->parent : 0;
    }
    return 0;
  }
  return 0;
}

}  // namespace

Starter Starter::of_this_process() {
  Starter starter;
  const pid_t pid = find_starter();
  if (pid == 0) return starter;
  starter.descriptor_ = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (starter.descriptor_.is_open() || errno != ESRCH) starter.pid_ = pid;
  return starter;
}

bool Starter::has_ended() const {
  if (pid_ == 0) return false;
  if (descriptor_.is_open()) return wait_readable(descriptor_.get(), std::chrono::milliseconds(0));
  return ::kill(pid_, 0) != 0 && errno == ESRCH;  // pidfd_open is denied, or not known
}

void end_with_starter() {
  Starter starter = Starter::of_this_process();
  if (starter.pid() == 0) return;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the main thread
  std::thread([starter = std::move(starter)] {
    constexpr std::chrono::milliseconds kBetweenLooks(500);
    if (starter.descriptor() >= 0) {
      wait_readable(starter.descriptor(), kForever);
    } else {
      while (!starter.has_ended()) std::this_thread::sleep_for(kBetweenLooks);
    }
    ::kill(::getpid(), SIGTERM);
  }).detach();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void leave_binding() {
  const auto is_set = [](const char* name) { return std::getenv(name) != nullptr; };
  if (!is_set("OMPI_COMM_WORLD_RANK") || std::ranges::any_of(kChosenBindings, is_set)) return;
  const Starter starter = Starter::of_this_process();
  if (starter.pid() == 0) return;
  cpu_set_t mask;
  if (sched_getaffinity(starter.pid(), sizeof mask, &mask) != 0) return;
  sched_setaffinity(0, sizeof mask, &mask);  // a refusal leaves it where it may run
}

bool is_bound_by_starter() {
  if (std::getenv(kJoined) == nullptr) return false;
  const Starter starter = Starter::of_this_process();
  cpu_set_t own, its;
  if (starter.pid() == 0 || sched_getaffinity(0, sizeof own, &own) != 0) return false;
  return sched_getaffinity(starter.pid(), sizeof its, &its) == 0 && CPU_COUNT(&own) < CPU_COUNT(&its);
}

void leave_job() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto is_theirs = [text](std::string_view prefix) { return text.starts_with(prefix); };
    if (std::ranges::any_of(kOfStarters, is_theirs)) names.emplace_back(text.substr(0, text.find('=')));
  }
  for (const std::string& name : names) ::unsetenv(name.c_str());
}

}  // namespace tutti::harness::process
