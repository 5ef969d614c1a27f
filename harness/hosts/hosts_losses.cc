// SPDX-License-Identifier: Apache-2.0
// How HostsStarter tells that a host is lost: by the end of its agent or of its connection, by its absence, or by
// its silence.
#include <algorithm>
#include <utility>

#include <fmt/ranges.h>

#include "harness/hosts/hosts_starter.h"
#include "harness/process/agent.h"
#include "harness/text/text.h"
#include "impl/types/names.h"

namespace tutti::harness::hosts {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kBeforeTheRanks = 500ms;  // of its ranks nobody will have heard either, which says less
constexpr auto kMostSilence = 10s;
constexpr auto kLeastSilence = 3s;       // on a busy host nobody may get on for a while
constexpr auto kReasonPatience = 300ms;  // the reason that a host gives may come later than the end of its agent

}  // namespace

void HostsStarter::forgive_own_standstill() {
  const auto stood = Clock::now() - std::exchange(served_, Clock::now());
  if (stood < kUsualSilence) return;
  for (HostProcess& process : processes_) process.heard += stood;
}

void HostsStarter::look_for_losses(Connections::Events& events) {
  const auto now = Clock::now();
  const auto silence = std::clamp<std::chrono::nanoseconds>(job_->timeout / 2, kLeastSilence, kMostSilence);
  for (HostProcess& process : processes_) {
    if (process.is_lost || process.has_ended) continue;
    if (process.agent_status && process.stream.is_open() && now - process.agent_ended < kReasonPatience) continue;
    if (process.agent_status && (!process.has_come || *process.agent_status != 0 || !process.stream.is_open())) {
      const std::string words = process.has_come ? "" : process.log.last_words();
      lose(process,
           error(process.has_come ? Code::aborted : Code::unavailable, "{} {}{}{}{}", agent_of(process),
                 end_of(*process.agent_status), process.has_come ? "" : " before it had come",
                 words.empty() ? "" : ": ", shown(words)),
           events);
    } else if (process.has_come && !process.stream.is_open()) {
      lose(process, error(Code::aborted, "its connection has ended"), events);
    } else if (has_given_jobs_ && now - process.heard > silence) {
      lose(process,
           error(Code::aborted, "it has said nothing for {:.1f} s",
                 std::chrono::duration<double>(now - process.heard).count()),
           events);
    }
  }
  if (!has_given_jobs_ && now - started_ > job_->connect_timeout - kBeforeTheRanks) lose_absent(events);
}

void HostsStarter::lose_absent(Connections::Events& events) {
  std::vector<std::string> names, words;
  const HostProcess* first = nullptr;
  for (HostProcess& process : processes_) {
    if (process.hello || std::exchange(process.is_lost, true)) continue;
    if (first == nullptr) first = &process;
    names.push_back(name_of(process));
    const std::string said = process.log.last_words();
    words.push_back(
        fmt::format("{} {}{}", agent_of(process), said.empty() ? "has said nothing" : "said: ", shown(said)));
  }
  if (first == nullptr || is_ending_) return;
  events.on_lost_host(
      first->first,
      error(Code::unavailable, "{} {} not come to {} within {} s: {}",
            names.size() == 1 ? "host " + names.front() : "hosts " + joined(names), names.size() == 1 ? "has" : "have",
            listener_.address, std::chrono::duration<double>(job_->connect_timeout).count(), fmt::join(words, "; ")));
}

void HostsStarter::lose(HostProcess& process, const Status& why, Connections::Events& events) {
  if (process.is_lost) return;
  process.is_lost = true;
  if (is_ending_) return;
  events.on_lost_host(process.first,
                      Status(why.code(), fmt::format("host {} is lost: {}", name_of(process), why.message())));
}

}  // namespace tutti::harness::hosts
