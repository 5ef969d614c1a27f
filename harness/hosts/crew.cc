// SPDX-License-Identifier: Apache-2.0
#include "harness/hosts/crew.h"

#include <algorithm>
#include <memory>
#include <poll.h>
#include <set>
#include <utility>

#include "harness/hosts/hosts_starter.h"
#include "harness/launch/limits.h"
#include "harness/launch/running_job.h"

namespace tutti::harness::hosts {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kStartTick = 20ms;
constexpr auto kRestTick = 100ms;
constexpr auto kIdleSilence = 10s;  // of a host that is in no group

Outcome failed_with(Ending how, Status why) {
  Outcome outcome;
  outcome.how = how;
  outcome.failure = std::move(why);
  return outcome;
}

}  // namespace

/// A group that is played.
class Crew::Playing {
 public:
  Playing(const CrewGroup& group, const HostsRequest& crew, HostProcesses& processes)
      : group_(group),
        across_{
            .hosts = {}, .agent = crew.agent, .interface = crew.interface, .build = crew.build, .rail = group.rail} {
    TUTTI_ASSERT(!group.job.recalls, "a group of {} ranks recalls, and the others would wait for it", group.job.ranks);
    std::vector<int> numbers;
    for (const CrewMember& member : group.members) {
      const std::string& name = processes.name(member.host);
      across_.hosts.push_back({.name = name, .ranks = member.ranks, .domain_bytes = member.domain_bytes});
      numbers.push_back(member.host);
      if (const auto& loss = processes.loss(member.host); loss && !outcome_) {
        outcome_ = failed_with(Ending::lost_host,
                               Status(loss->code(), fmt::format("host {} is lost: {}", name, loss->message())));
      }
    }
    starter_.emplace(across_, processes, std::move(numbers));
    job_ = group.job;
    job_.starter = &*starter_;
    running_.emplace(job_, *group.listener);
  }
  Playing(const Playing&) = delete;
  Playing& operator=(const Playing&) = delete;

  void start() {
    if (outcome_) return;
    ends_ = Clock::now() + group_.deadline;
    if (const Status started = running_->start(); !started.is_ok()) finish(failed_with(Ending::said_error, started));
  }
  [[nodiscard]] bool is_over() const { return outcome_.has_value(); }
  [[nodiscard]] std::chrono::milliseconds add_to(std::vector<pollfd>& set) const { return running_->add_to(set); }
  void step() {
    if (Clock::now() > ends_) running_->expire(group_.deadline);
    if (auto outcome = running_->step()) finish(*std::move(outcome));
  }
  [[nodiscard]] Outcome& outcome() { return *outcome_; }

 private:
  void finish(Outcome outcome) {
    outcome_ = std::move(outcome);
    running_.reset();
    starter_.reset();
  }

  const CrewGroup& group_;
  JobAcross across_;
  Job job_;
  std::optional<HostsStarter> starter_;
  std::optional<RunningJob> running_;
  std::optional<Outcome> outcome_;
  TimePoint ends_;
};

Status Crew::start(HostsRequest request, std::chrono::milliseconds patience) {
  TUTTI_RETURN_IF_ERROR(log_.open({}));
  request.log = log_.descriptor();
  request_ = request;
  // A connection, an agent's stdin and its log for each host, and what its groups take.
  Job most;
  most.ranks = 4 * static_cast<int>(request.hosts.size());
  most.starter = nullptr;
  most.ranks_here = static_cast<int>(request.hosts.size());
  TUTTI_RETURN_IF_ERROR(prepare_limits(needs_of(most)));
  TUTTI_RETURN_IF_ERROR(processes_.start(std::move(request)));
  const auto is_settled = [&](int host) { return processes_.hello(host) || processes_.loss(host); };
  const auto end = Clock::now() + patience;
  for (;;) {
    go_on(kStartTick);
    if (is_interrupted()) return error(Code::aborted, "{}", interruption_text(interrupts_.signal()));
    bool are_settled = true;
    for (int host = 0; host < static_cast<int>(size()); ++host) are_settled &= is_settled(host);
    if (are_settled || Clock::now() > end) break;
  }
  for (int host = 0; host < static_cast<int>(size()); ++host) {
    if (is_settled(host)) continue;
    processes_.lose(host, error(Code::unavailable, "it has not come to {} within {} s: {}", processes_.listens_at(),
                                std::chrono::duration<double>(patience).count(), processes_.absence(host)));
  }
  for (int host = 0; host < static_cast<int>(size()); ++host) {
    if (processes_.loss(host)) processes_.dismiss(host);
  }
  processes_.close_listener();
  return {};
}

void Crew::go_on(std::chrono::milliseconds most) {
  std::vector<pollfd> set = {{interrupts_.descriptor(), POLLIN, 0}};
  processes_.add_to(set);
  ::poll(set.data(), set.size(), static_cast<int>(most.count()));
  processes_.reap();
  processes_.service();
}

Result<std::vector<Result<std::string>>> Crew::examine(const std::vector<std::string>& questions,
                                                       std::chrono::milliseconds patience) {
  const int hosts = static_cast<int>(size());
  for (int host = 0; host < hosts; ++host) {
    if (!loss(host)) processes_.examine(host, questions.at(static_cast<std::size_t>(host)));
  }
  const auto end = Clock::now() + patience;
  const auto is_silent = [this](int host) { return Clock::now() - processes_.heard(host) > kIdleSilence; };
  const auto is_awaited = [&](int host) { return !loss(host) && !processes_.examined(host) && !is_silent(host); };
  for (bool is_over = false; !is_over;) {
    go_on(kStartTick);
    if (is_interrupted()) return error(Code::aborted, "{}", interruption_text(interrupts_.signal()));
    is_over = true;
    for (int host = 0; host < hosts; ++host) is_over &= !is_awaited(host);
    is_over |= Clock::now() > end;
  }
  std::vector<Result<std::string>> answers;
  for (int host = 0; host < hosts; ++host) {
    if (const auto& examined = processes_.examined(host)) {
      answers.push_back(*examined);
    } else if (loss(host)) {
      answers.emplace_back(*loss(host));
    } else {
      const bool was_silent = is_silent(host);
      answers.emplace_back(error(
          Code::timeout, "it has {} within {} s", was_silent ? "sent nothing" : "not answered",
          std::chrono::duration<double>(was_silent ? std::chrono::milliseconds(kIdleSilence) : patience).count()));
    }
  }
  return answers;
}

void Crew::rest(std::chrono::milliseconds time) {
  for (const auto end = Clock::now() + time; Clock::now() < end && !is_interrupted();) go_on(kRestTick);
}

std::vector<Outcome> Crew::run(const std::vector<CrewGroup>& groups) {
  std::set<int> taken;
  for (const CrewGroup& group : groups) {
    for (const CrewMember& member : group.members) {
      TUTTI_ASSERT(taken.insert(member.host).second, "host {} is in two groups", member.host);
    }
  }
  go_on(0ms);
  for (const int host : taken) {
    if (Clock::now() - processes_.heard(host) > kIdleSilence) {
      processes_.lose(host, error(Code::aborted, "it has said nothing for {} s", kIdleSilence.count()));
    }
  }
  std::vector<std::unique_ptr<Playing>> all;
  for (const CrewGroup& group : groups) all.push_back(std::make_unique<Playing>(group, request_, processes_));
  for (const auto& one : all) one->start();
  const auto is_over = [](const auto& one) { return one->is_over(); };
  while (!std::ranges::all_of(all, is_over)) {
    std::vector<pollfd> set;
    processes_.add_to(set);
    std::chrono::milliseconds most = 100ms;
    for (const auto& one : all) {
      if (!one->is_over()) most = std::min(most, one->add_to(set));
    }
    ::poll(set.data(), set.size(), static_cast<int>(most.count()));
    processes_.reap();
    processes_.service();
    for (const auto& one : all) {
      if (!one->is_over()) one->step();
    }
  }
  std::vector<Outcome> outcomes;
  for (const auto& one : all) outcomes.push_back(std::move(one->outcome()));
  return outcomes;
}

}  // namespace tutti::harness::hosts
