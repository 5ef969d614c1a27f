// SPDX-License-Identifier: Apache-2.0
#include "harness/hosts/placed_job.h"

#include <algorithm>

#include "harness/hosts/hosts_starter.h"
#include "harness/launch/launch.h"
#include "harness/process/agent.h"
#include "harness/text/redaction.h"

namespace tutti::harness::hosts {
namespace {

Status check(const Job& job, const JobAcross& across) {
  if (!job.ranks_as->is_process) {
    return error(Code::invalid_argument, "ranks on several hosts are processes");
  }
  if (job.start && job.start->across.empty()) {
    return error(Code::unavailable, "'{}' starts ranks on one host only: leave its backend out",
                 job.start->words.front());
  }
  if (job.start && across.agent.find(' ') != std::string::npos &&
      std::ranges::find(job.start->across, kAgentProgram) != job.start->across.end()) {
    return error(Code::unavailable, "--agent '{}': '{}' takes an agent of one word: name a script that has the others",
                 without_arguments(across.agent), job.start->words.front());
  }
  return {};
}

}  // namespace

Result<Outcome> launch_placed(const PlacedJob& job, Listener& listener) {
  if (!job.across) return launch_job(job, listener);
  TUTTI_RETURN_IF_ERROR(check(job, *job.across));
  HostsStarter starter(*job.across);
  Job with_starter = job;
  with_starter.starter = &starter;
  return launch_job(with_starter, listener);
}

}  // namespace tutti::harness::hosts
