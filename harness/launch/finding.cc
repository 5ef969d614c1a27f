// SPDX-License-Identifier: Apache-2.0
#include "harness/launch/finding.h"

#include <csignal>
#include <cstring>
#include <sys/wait.h>

#include "harness/process/interrupts.h"

namespace tutti::harness::launch {
namespace {

constexpr int kKilled = 5;  // from here on a finding explains what other ranks say

/// A rank that knows of its failure only that another one has failed.
bool is_hearsay(const Finding& finding) { return finding.how == Ending::said_error && finding.code == Code::aborted; }

int weight(const Finding& finding) {
  switch (finding.how) {
    case Ending::finished:
      return 0;
    case Ending::exited:
      return finding.is_certain ? 2 : 1;
    case Ending::said_error:
      return is_hearsay(finding) ? 3 : 4;
    case Ending::garbled:
      return 4;
    case Ending::killed:
      return kKilled;
    case Ending::stopped:
    case Ending::hung:
    case Ending::lost_host:
    case Ending::never_connected:
      return 6;
    case Ending::interrupted:
      return 7;
  }
  return 0;
}

}  // namespace

std::string_view to_string(Ending how) {
  switch (how) {
    case Ending::finished:
      return "finished";
    case Ending::exited:
      return "exited";
    case Ending::killed:
      return "killed";
    case Ending::stopped:
      return "stopped";
    case Ending::hung:
      return "hung";
    case Ending::said_error:
      return "said error";
    case Ending::garbled:
      return "garbled";
    case Ending::lost_host:
      return "lost host";
    case Ending::never_connected:
      return "never connected";
    case Ending::interrupted:
      return "interrupted";
  }
  return "unknown";
}

std::string name_of(int rank, pid_t pid) {
  const std::string who = rank < 0 ? "mpirun" : fmt::format("rank {}", rank);
  return pid > 0 ? fmt::format("{} (pid {})", who, pid) : who;
}

Finding lost_connection(int rank, const std::string& who) {
  Finding finding;
  finding.rank = rank;
  finding.text = fmt::format("{} closed its connection before it was done", who);
  finding.is_certain = false;
  return finding;
}

Finding killed_by(int rank, const std::string& who, int signal) {
  Finding finding;
  finding.how = Ending::killed;
  finding.rank = rank;
  finding.number = signal;
  finding.text = fmt::format("{} was killed by signal {} ({})", who, signal, ::strsignal(signal));
  if (signal == SIGKILL) finding.text += ": by a user or a program, or by the kernel for lack of memory";
  return finding;
}

Finding exited_with(int rank, const std::string& who, int exit_code) {
  Finding finding;
  finding.rank = rank;
  finding.number = exit_code;
  finding.text = fmt::format("{} exited with code {}{}", who, exit_code, exit_code == 0 ? " before it was done" : "");
  return finding;
}

Finding interrupted_by(int signal) {
  Finding finding;
  finding.how = Ending::interrupted;
  finding.number = signal;
  finding.text = interruption_text(signal);
  return finding;
}

Finding from_wait_status(int rank, const std::string& who, int wait_status) {
  return WIFSIGNALED(wait_status) ? killed_by(rank, who, WTERMSIG(wait_status))
                                  : exited_with(rank, who, WEXITSTATUS(wait_status));
}

bool outweighs(const Finding& later, const Finding& earlier) {
  if (later.rank != earlier.rank && is_hearsay(earlier)) return !is_hearsay(later);
  if (weight(later) <= weight(earlier)) return false;
  return later.rank == earlier.rank || weight(later) >= kKilled;
}

bool is_final(const Finding& finding) { return weight(finding) >= kKilled; }

}  // namespace tutti::harness::launch
