// SPDX-License-Identifier: Apache-2.0
// How HostsStarter asks the hosts of a group that hangs what their ranks called last, and where these are.
#include <algorithm>
#include <iterator>
#include <utility>

#include "harness/hosts/hosts_starter.h"
#include "harness/process/stacks.h"
#include "harness/text/text.h"
#include "impl/types/names.h"
#include "impl/types/printable.h"

namespace tutti::harness::hosts {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kCallsPatience = 5s;  // a host has only to read its memory
constexpr auto kRecallPatience = kStacksPatience + 2s;
constexpr std::size_t kMostBytesOfAll = std::size_t{64} << 20;  // of the stacks of all ranks

}  // namespace

Recall HostsStarter::recall(std::span<const pid_t> /*pids*/, Connections::Events& events, const Board& board,
                            const Interrupts& interrupts) {
  if (!has_given_jobs_) return {};
  for (Member& member : members_) {
    if (is_gone(member)) continue;
    send(member, {"recall", ""});
    member.recalled = Recalled::asked;
  }
  const auto since = Clock::now();
  const auto is_awaited = [&](const Member& member) { return may_recall(member, since); };
  while (std::ranges::any_of(members_, is_awaited) && interrupts.signal() == 0) {
    listen();
    reap();  // the start command too
    take_news(events, board);
  }
  Recall recall;
  for (const Member& member : members_) hand_on_calls(member, since, recall);
  hand_on_stacks(recall);
  told_ = {};
  for (Member& member : members_) member.recalled = Recalled::done;
  return recall;
}

bool HostsStarter::has_told_calls(const Member& member) const {
  const auto after_last = told_.calls.lower_bound(member.first + member.host->ranks);
  return std::distance(told_.calls.lower_bound(member.first), after_last) == member.host->ranks;
}

bool HostsStarter::may_recall(const Member& member, TimePoint since) const {
  if (member.recalled != Recalled::asked || is_gone(member)) return false;
  return Clock::now() - since < (has_told_calls(member) ? kRecallPatience : kCallsPatience);
}

std::string HostsStarter::why_silent(const Member& member, TimePoint since) const {
  if (const auto& loss = processes_.loss(member.number)) return loss->message();
  if (processes_.has_left(member.number)) return "it has left";
  if (member.recalled == Recalled::done) return "it cannot read their memory";
  return fmt::format("it has not answered within {:.1f} s",
                     std::chrono::duration<double>(Clock::now() - since).count());
}

Status HostsStarter::take_recalled(Member& member, const Frame& frame) {
  if (processes_.loss(member.number) || member.recalled == Recalled::done) return {};
  if (member.recalled == Recalled::not_asked) {
    return error(Code::io, "it sends '{}', which this launcher has not asked", frame.type);
  }
  if (frame.type == "recalled") {
    member.recalled = Recalled::done;
    return {};
  }
  TUTTI_ASSIGN_OR_RETURN(const RankEvent event, event_of(member, frame));
  if (frame.type == "calls") {
    told_.calls.emplace(event.rank, calls_from_lines(event.rest));
  } else if (!told_.stacks.contains(event.rank)) {
    take_stack(event.rank, event.rest);
  }
  return {};
}

void HostsStarter::take_stack(int rank, std::string_view told) {
  std::string& text = told_.stacks[rank];
  if (told.size() > kMostStackBytes) {
    text = fmt::format("not read: it has {} bytes, and at most {} are taken\n", told.size(), kMostStackBytes);
  } else if (told_.stack_bytes + told.size() > kMostBytesOfAll) {
    text = fmt::format("not read: {} bytes are taken of all ranks\n", kMostBytesOfAll);
  } else {
    told_.stack_bytes += told.size();
    text = stack_lines(printable(told));
  }
}

void HostsStarter::hand_on_calls(const Member& member, TimePoint since, Recall& recall) {
  const std::string why = why_silent(member, since);
  std::map<std::string, std::vector<int>> missing;  // by why
  for (int rank = member.first; rank < member.first + member.host->ranks; ++rank) {
    const auto told = told_.calls.find(rank);
    if (told == told_.calls.end()) {
      missing[why].push_back(rank);
    } else if (!told->second.is_ok()) {
      missing[told->second.status().message()].push_back(rank);
    } else {
      recall.calls.emplace(rank, std::move(told->second).value());
    }
  }
  for (const auto& [reason, ranks] : missing) {
    recall.silent.push_back(fmt::format("host {} ({}): {}", member.host->name, rank_list(ranks), shown(reason)));
  }
}

void HostsStarter::hand_on_stacks(Recall& recall) {
  for (int rank = 0; rank < job_->ranks && !told_.stacks.empty(); ++rank) {
    std::string& text = told_.stacks[rank];
    if (text.empty()) text = "not read: its host has not told it\n";
    recall.stacks.push_back({.rank = rank, .text = std::move(text)});
  }
}

}  // namespace tutti::harness::hosts
