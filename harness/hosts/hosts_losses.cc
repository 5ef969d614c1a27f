// SPDX-License-Identifier: Apache-2.0
// How HostsStarter tells that a machine is lost: by the end of its agent or of its connection, by its absence, or by
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
constexpr auto kLeastSilence = 3s;       // on a busy machine nobody may get on for a while
constexpr auto kReasonPatience = 300ms;  // the reason that a machine gives may come later than the end of its agent

}  // namespace

void HostsStarter::forgive_own_standstill() {
  const auto stood = Clock::now() - std::exchange(served_, Clock::now());
  if (stood < kUsualSilence) return;
  for (Machine& machine : machines_) machine.heard += stood;
}

void HostsStarter::look_for_losses(Connections::Events& events) {
  const auto now = Clock::now();
  const auto silence = std::clamp<std::chrono::nanoseconds>(job_->timeout / 2, kLeastSilence, kMostSilence);
  for (Machine& machine : machines_) {
    if (machine.is_lost || machine.has_ended) continue;
    if (machine.agent_status && machine.stream.is_open() && now - machine.agent_ended < kReasonPatience) continue;
    if (machine.agent_status && (!machine.has_come || *machine.agent_status != 0 || !machine.stream.is_open())) {
      const std::string words = machine.has_come ? "" : machine.log.last_words();
      lose(machine,
           error(machine.has_come ? Code::aborted : Code::unavailable, "{} {}{}{}{}", agent_of(machine),
                 end_of(*machine.agent_status), machine.has_come ? "" : " before it had come",
                 words.empty() ? "" : ": ", shown(words)),
           events);
    } else if (machine.has_come && !machine.stream.is_open()) {
      lose(machine, error(Code::aborted, "its connection has ended"), events);
    } else if (has_given_jobs_ && now - machine.heard > silence) {
      lose(machine,
           error(Code::aborted, "it has said nothing for {:.1f} s",
                 std::chrono::duration<double>(now - machine.heard).count()),
           events);
    }
  }
  if (!has_given_jobs_ && now - started_ > job_->connect_timeout - kBeforeTheRanks) lose_absent(events);
}

void HostsStarter::lose_absent(Connections::Events& events) {
  std::vector<std::string> names, words;
  const Machine* first = nullptr;
  for (Machine& machine : machines_) {
    if (machine.hello || std::exchange(machine.is_lost, true)) continue;
    if (first == nullptr) first = &machine;
    names.push_back(name_of(machine));
    const std::string said = machine.log.last_words();
    words.push_back(
        fmt::format("{} {}{}", agent_of(machine), said.empty() ? "has said nothing" : "said: ", shown(said)));
  }
  if (first == nullptr || is_ending_) return;
  events.on_lost_host(
      first->first,
      error(Code::unavailable, "{} {} not come to {} within {} s: {}",
            names.size() == 1 ? "host " + names.front() : "hosts " + joined(names), names.size() == 1 ? "has" : "have",
            listener_.address, std::chrono::duration<double>(job_->connect_timeout).count(), fmt::join(words, "; ")));
}

void HostsStarter::lose(Machine& machine, const Status& why, Connections::Events& events) {
  if (machine.is_lost) return;
  machine.is_lost = true;
  if (is_ending_) return;
  events.on_lost_host(machine.first,
                      Status(why.code(), fmt::format("host {} is lost: {}", name_of(machine), why.message())));
}

}  // namespace tutti::harness::hosts
