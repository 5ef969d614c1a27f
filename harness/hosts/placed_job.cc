// SPDX-License-Identifier: Apache-2.0
#include "harness/hosts/placed_job.h"

#include <algorithm>
#include <list>
#include <utility>

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

std::vector<Result<Outcome>> launch_all_placed(std::span<const PlacedJob> jobs, std::span<Listener* const> listeners) {
  std::vector<Result<Outcome>> outcomes(jobs.size(), error(Code::io, "the job is not over"));
  std::list<HostsStarter> starters;
  std::vector<Job> fit;
  std::vector<Listener*> listeners_of_fit;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i].across) {
      if (const Status unfit = check(jobs[i], *jobs[i].across); !unfit.is_ok()) {
        outcomes[i] = unfit;
        continue;
      }
    }
    fit.push_back(jobs[i]);
    if (jobs[i].across) fit.back().starter = &starters.emplace_back(*jobs[i].across);
    listeners_of_fit.push_back(listeners[i]);
    places.push_back(i);
  }
  auto launched = launch_jobs(fit, listeners_of_fit);
  for (std::size_t i = 0; i < places.size(); ++i) outcomes[places[i]] = std::move(launched[i]);
  return outcomes;
}

Result<Outcome> launch_placed(const PlacedJob& job, Listener& listener) {
  Listener* const one = &listener;
  return std::move(launch_all_placed(std::span(&job, 1), std::span(&one, 1)).front());
}

}  // namespace tutti::harness::hosts
