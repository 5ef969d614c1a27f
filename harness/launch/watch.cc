// SPDX-License-Identifier: Apache-2.0
#include "harness/launch/watch.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/ranges.h>

#include "harness/process/processes.h"

namespace tutti::harness::launch {
namespace {

constexpr std::size_t kMostLines = 16;

bool is_waiting(const RankView& view) { return view.waited.count() > 0; }
bool is_stopped(const RankView& view) { return view.state == 'T' || view.state == 't' || view.state == kUnheard; }
bool is_gone(const RankView& view) { return view.state == 'Z' || view.state == 'X'; }

double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

std::string name_of(const RankView& view) {
  return view.host.empty() ? fmt::format("rank {} (pid {})", view.rank, view.pid)
                           : fmt::format("rank {} on {} (pid {})", view.rank, view.host, view.pid);
}

// Smaller is guiltier.
auto innocence(const RankView& view) {
  return std::tuple(!is_stopped(view), !is_gone(view), view.operation, is_waiting(view), view.rank);
}

// "rank 1 has waited 2.0 s in operation 3 (...)", for the one that waited longest, and how many others wait with it.
std::string victims(std::span<const RankView> ranks, int culprit, const CaseName& case_name) {
  const RankView* longest = nullptr;
  int others = -1;
  for (const RankView& view : ranks) {
    if (!is_waiting(view) || view.rank == culprit) continue;
    ++others;
    if (longest == nullptr || view.waited > longest->waited) longest = &view;
  }
  if (longest == nullptr) return "";
  const std::string more = others > 0 ? fmt::format(" ({} more wait)", others) : "";
  return fmt::format("; rank {} has waited {:.1f} s {}{}", longest->rank, seconds(longest->waited),
                     place_of(*longest, case_name), more);
}

bool has_waited(std::span<const RankView> ranks, std::chrono::nanoseconds patience) {
  return std::ranges::any_of(ranks, [&](const RankView& view) { return view.waited > patience + view.granted; });
}

// Judges the ranks in view; nothing if none is late.
std::optional<Blame> find_culprit(std::span<const RankView> ranks, std::chrono::nanoseconds timeout,
                                  const CaseName& case_name) {
  if (!has_waited(ranks, timeout)) return std::nullopt;
  const auto guilty = std::min_element(
      ranks.begin(), ranks.end(), [](const RankView& a, const RankView& b) { return innocence(a) < innocence(b); });
  const auto is_as_guilty = [&](const RankView& view) {
    return is_waiting(view) && view.operation == guilty->operation && !is_stopped(view) && !is_gone(view);
  };
  Blame blame;
  if (ranks.size() > 1 && std::all_of(ranks.begin(), ranks.end(), is_as_guilty)) {
    blame.text = fmt::format("all {} ranks hang {}, for {:.1f} s; none of them is stopped", ranks.size(),
                             place_of(*guilty, case_name), seconds(guilty->waited));
    return blame;
  }
  blame.rank = guilty->rank;
  blame.how = is_stopped(*guilty) ? Ending::stopped : is_gone(*guilty) ? Ending::exited : Ending::hung;
  const std::string state = is_gone(*guilty) ? "dead" : describe_state(guilty->state);
  const std::string own_wait =
      is_waiting(*guilty) ? fmt::format(" for {:.1f} s", seconds(guilty->waited)) : std::string();
  blame.text = fmt::format("{} is {}, {}{}{}", name_of(*guilty), state, place_of(*guilty, case_name), own_wait,
                           victims(ranks, guilty->rank, case_name));
  return blame;
}

// It, or all ranks in view, may wait for a rank that is out of sight.
bool is_hung_in_a_wait(const Blame& blame, std::span<const RankView> ranks) {
  if (blame.rank < 0) return true;
  const auto blamed = std::ranges::find(ranks, blame.rank, &RankView::rank);
  return blame.how == Ending::hung && is_waiting(*blamed);
}

// The end of the chain of waits that begins with the rank of this host that has waited longest for one of another host.
Blame find_far_culprit(std::span<const RankView> ranks, const HostsInView& hosts, const CaseName& case_name) {
  const auto host_of = [&](int rank) { return hosts.host_of[static_cast<std::size_t>(rank)]; };
  const auto is_here = [&](int rank) { return host_of(rank) == hosts.own_host; };
  const auto name_of_far = [&](int rank) {
    return fmt::format("rank {} on {}", rank, hosts.host_names[static_cast<std::size_t>(host_of(rank))]);
  };
  const auto waits = [&](const RankView& view) {
    return fmt::format("{} has waited {:.1f} s {}", name_of(view), seconds(view.waited), place_of(view, case_name));
  };
  const auto has_far_peer = [&](const RankView& view) {
    return hosts.awaited.contains(view.rank) && !is_here(hosts.awaited.at(view.rank));
  };
  // Who has waited longest stands before whatever came of it.
  std::vector<RankView> sorted(ranks.begin(), ranks.end());
  std::ranges::stable_sort(sorted, std::ranges::greater(), &RankView::waited);
  Blame blame;
  const auto first = std::ranges::find_if(sorted, has_far_peer);
  if (first == sorted.end()) {
    blame.text = waits(sorted.front()) + " for a rank that is not known";
    return blame;
  }
  const int peer = hosts.awaited.at(first->rank);
  int last = peer;
  for (std::set<int> seen; hosts.awaited.contains(last) && seen.insert(last).second;) last = hosts.awaited.at(last);
  if (hosts.awaited.contains(last) || is_here(last)) last = peer;  // they wait for each other
  blame.rank = last;
  blame.text = fmt::format("{} is waited for, and no more is known of it here; {} for {}", name_of_far(last),
                           waits(*first), last == peer ? "it" : name_of_far(peer));
  return blame;
}

}  // namespace

std::string place_of(const RankView& view, const CaseName& case_name) {
  if (view.operation == 0) return "before its first operation";
  const std::string where = fmt::format("operation {} ({})", view.operation, case_name(view.case_index));
  return (is_waiting(view) ? (view.activity == Activity::exchange ? "in an exchange, " : "in ") : "idle after ") +
         where;
}

std::string describe_ranks(std::span<const RankView> ranks, const CaseName& case_name,
                           std::span<const RankStanding> standings) {
  std::vector<RankView> sorted(ranks.begin(), ranks.end());
  std::ranges::stable_sort(sorted, {}, innocence);
  const std::size_t shown = std::min(sorted.size(), kMostLines);
  std::string text;
  for (const RankView& view : std::span(sorted).first(shown)) {
    text += fmt::format("\n  {}: ", name_of(view));
    if (is_gone(view)) text += "dead, ";
    if (is_stopped(view)) text += describe_state(view.state) + ", ";
    text += place_of(view, case_name);
    if (is_waiting(view)) text += fmt::format(" for {:.1f} s", seconds(view.waited));
    if (const auto index = static_cast<std::size_t>(view.rank); index < standings.size()) {
      text += "; " + standings[index].text;
    }
  }
  if (shown < sorted.size()) text += fmt::format("\n  and {} more", sorted.size() - shown);
  return text;
}

std::chrono::nanoseconds longest_wait(const Board& board, std::int64_t now_ns, const Standstill& stood) {
  std::int64_t longest = 0;
  for (int rank = 0; rank < board.ranks(); ++rank) {
    const Announced announced = announced_on(board.status(rank));
    if (announced.since_ns == 0) continue;
    const std::int64_t waited_ns = now_ns - announced.since_ns - stood.after(announced.since_ns).count();
    longest = std::max(longest, waited_ns - announced.granted_ns);
  }
  return std::chrono::nanoseconds(longest);
}

std::vector<RankView> view_ranks(const Board& board, std::span<const pid_t> pids, std::int64_t now_ns,
                                 const Standstill& stood) {
  std::vector<RankView> views;
  for (int rank = 0; rank < board.ranks(); ++rank) {
    const RankStatus& status = board.status(rank);
    const auto [since, granted] = announced_on(status);
    RankView view;
    view.rank = rank;
    view.pid = pids[static_cast<std::size_t>(rank)];
    const auto info = process_info(view.pid);
    view.state = info ? info->state : 'X';
    const std::int64_t waited_ns = now_ns - since - stood.after(since).count();
    view.waited = std::chrono::nanoseconds(since == 0 ? 0 : std::max<std::int64_t>(waited_ns, 1));
    view.granted = std::chrono::nanoseconds(granted);
    view.operation = status.operation.load(std::memory_order_relaxed);
    view.case_index = status.case_index.load(std::memory_order_relaxed);
    view.activity = static_cast<Activity>(status.activity.load(std::memory_order_relaxed));
    view.awaited = status.awaited.load(std::memory_order_relaxed) - 1;
    views.push_back(view);
  }
  return views;
}

std::optional<Blame> judge_hang(const HangScene& scene, const CaseName& case_name) {
  std::optional<Blame> blame = find_culprit(scene.ranks, scene.patience, case_name);
  if (!blame) return std::nullopt;
  const bool sees_all = scene.hosts == nullptr;
  const bool is_clear = sees_all ? blame->rank >= 0 : !is_hung_in_a_wait(*blame, scene.ranks);
  if (is_clear) return blame;
  if (!has_waited(scene.ranks, scene.patience + scene.more_patience)) return std::nullopt;
  return sees_all ? std::move(blame) : find_far_culprit(scene.ranks, *scene.hosts, case_name);
}

}  // namespace tutti::harness::launch
