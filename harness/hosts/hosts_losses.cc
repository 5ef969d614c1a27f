// SPDX-License-Identifier: Apache-2.0
// How HostsStarter tells that a host of its group is lost: by its absence, by its silence, or since its process is.
#include <algorithm>
#include <utility>

#include <fmt/ranges.h>

#include "harness/hosts/hosts_starter.h"
#include "harness/text/text.h"

namespace tutti::harness::hosts {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kBeforeTheRanks = 500ms;  // its ranks will be silent too, which says less
constexpr auto kMostSilence = 10s;
constexpr auto kLeastSilence = 3s;  // on a busy host no process may get on for a while

}  // namespace

void HostsStarter::look_for_losses(Connections::Events& events) {
  const auto silence = std::clamp<std::chrono::nanoseconds>(job_->timeout / 2, kLeastSilence, kMostSilence);
  for (Member& member : members_) {
    if (const auto& loss = processes_.loss(member.number)) {
      lose(member, *loss, events);
    } else if (has_asked_ && !processes_.has_left(member.number) && !was_heard(member, silence)) {
      const auto since = Clock::now() - std::max(processes_.heard(member.number), asked_);
      processes_.lose(member.number, error(Code::aborted, "it has said nothing for {:.1f} s",
                                           std::chrono::duration<double>(since).count()));
      lose(member, *processes_.loss(member.number), events);
    }
  }
  if (!has_asked_ && Clock::now() - started_ > job_->connect_timeout - kBeforeTheRanks) lose_absent(events);
}

void HostsStarter::lose_absent(Connections::Events& events) {
  std::vector<std::string> names, words;
  const Member* first = nullptr;
  for (Member& member : members_) {
    if (processes_.hello(member.number) || std::exchange(member.is_lost, true)) continue;
    if (first == nullptr) first = &member;
    names.push_back(name_of(member));
    words.push_back(processes_.absence(member.number));
  }
  if (first == nullptr || is_ending_) return;
  const Status why = error(Code::unavailable, "{} {} not come to {} within {} s: {}",
                           names.size() == 1 ? "host " + names.front() : "hosts " + joined(names),
                           names.size() == 1 ? "has" : "have", processes_.listens_at(),
                           std::chrono::duration<double>(job_->connect_timeout).count(), fmt::join(words, "; "));
  for (const Member& member : members_) {
    if (!processes_.hello(member.number)) processes_.lose(member.number, why);
  }
  events.on_lost_host(first->first, why);
}

void HostsStarter::lose(Member& member, const Status& why, Connections::Events& events) {
  if (std::exchange(member.is_lost, true) || is_ending_) return;
  events.on_lost_host(member.first,
                      Status(why.code(), fmt::format("host {} is lost: {}", name_of(member), why.message())));
}

}  // namespace tutti::harness::hosts
