// SPDX-License-Identifier: Apache-2.0
// How HostsStarter asks the hosts of a group that hangs what their ranks called last, and where these are.
#include <algorithm>
#include <iterator>
#include <poll.h>
#include <utility>

#include "harness/hosts/hosts_starter.h"
#include "harness/process/stacks.h"
#include "impl/types/names.h"
#include "impl/types/printable.h"

namespace tutti::harness::hosts {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kCallsPatience = 5s;  // a host has only to read its memory
constexpr auto kRecallPatience = kStacksPatience + 2s;
constexpr int kRecallTick = 20;  // ms

}  // namespace

Recall HostsStarter::recall(Connections::Events& events, const Board& board, const Interrupts& interrupts) {
  if (!has_given_jobs_) return {};
  recall_.emplace();
  for (const Member& member : members_) {
    if (!processes_.loss(member.number)) send(member, {"recall", ""});
  }
  const auto asked = Clock::now();
  const auto is_awaited = [&](const Member& member) { return may_recall(member, asked); };
  while (std::ranges::any_of(members_, is_awaited) && interrupts.signal() == 0) {
    std::vector<pollfd> set;
    processes_.add_to(set);
    ::poll(set.data(), set.size(), kRecallTick);
    processes_.reap();
    processes_.service();
    take_news(events, board);
  }
  for (const Member& member : members_) {
    if (has_told_calls(member)) continue;
    recall_->silent.push_back(fmt::format("host {}: {}", name_of(member), shown(why_silent(member, asked))));
  }
  return std::exchange(*recall_, {});
}

bool HostsStarter::has_told_calls(const Member& member) const {
  const auto after_last = recall_->calls.lower_bound(member.first + member.host->ranks);
  return std::distance(recall_->calls.lower_bound(member.first), after_last) == member.host->ranks;
}

bool HostsStarter::may_recall(const Member& member, TimePoint since) const {
  if (member.has_recalled || processes_.loss(member.number)) return false;
  return Clock::now() - since < (has_told_calls(member) ? kRecallPatience : kCallsPatience);
}

std::string HostsStarter::why_silent(const Member& member, TimePoint since) const {
  if (const auto& loss = processes_.loss(member.number)) return loss->message();
  if (member.has_recalled) return "it cannot read the memory of its ranks";
  return fmt::format("it has not answered within {:.1f} s",
                     std::chrono::duration<double>(Clock::now() - since).count());
}

Status HostsStarter::take_recalled(const RankEvent& event, const Frame& frame) {
  if (!recall_) return error(Code::io, "it sends '{}', which this launcher has not asked", frame.type);
  if (frame.type == "calls") {
    auto calls = calls_from_lines(event.rest);
    if (!calls.is_ok())
      return error(Code::invalid_argument, "what rank {} called last: {}", event.rank, calls.status().message());
    recall_->calls[event.rank] = std::move(calls).value();
    return {};
  }
  if (event.rest.size() > kMostStackBytes) {
    return error(Code::invalid_argument, "the stacks of rank {} have {} bytes, and at most {} are taken", event.rank,
                 event.rest.size(), kMostStackBytes);
  }
  std::vector<RankStack>& stacks = recall_->stacks;
  for (int rank = static_cast<int>(stacks.size()); rank < job_->ranks; ++rank) {
    stacks.push_back({.rank = rank, .text = "not read: its host has not told it\n"});
  }
  std::string& text = stacks[static_cast<std::size_t>(event.rank)].text = printable(event.rest);
  if (!text.ends_with('\n')) text += '\n';
  return {};
}

}  // namespace tutti::harness::hosts
