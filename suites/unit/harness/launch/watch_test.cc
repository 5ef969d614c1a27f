// SPDX-License-Identifier: Apache-2.0
#include "harness/launch/watch.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/machine/clock.h"

namespace tutti::harness::launch {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

std::string case_name(std::uint32_t index) { return "case " + std::to_string(index); }

RankView waiting(int rank, std::uint64_t operation, std::chrono::nanoseconds waited) {
  RankView view;
  view.rank = rank;
  view.pid = 100 + rank;
  view.waited = waited;
  view.operation = operation;
  view.case_index = 4;
  view.activity = Activity::operation;
  return view;
}

RankView idle(int rank, std::uint64_t operation) {
  RankView view = waiting(rank, operation, 0ns);
  view.activity = Activity::idle;
  return view;
}

std::optional<Blame> judge(const std::vector<RankView>& ranks, std::chrono::nanoseconds patience) {
  return judge_hang({.ranks = ranks, .patience = patience}, case_name);
}

TEST(Watch, NobodyIsToBlameWithinTheTimeout) {
  EXPECT_FALSE(judge(std::vector{waiting(0, 3, 2s), idle(1, 2)}, 2s).has_value());
  EXPECT_FALSE(judge(std::vector{idle(0, 3), idle(1, 2)}, 1ns).has_value());
}

TEST(Watch, NobodyIsToBlameWithinWhatWasGranted) {
  std::vector ranks = {waiting(0, 3, 4s), waiting(1, 3, 4s)};
  for (RankView& rank : ranks) rank.granted = 3s;
  EXPECT_FALSE(judge(ranks, 2s).has_value());
  EXPECT_TRUE(judge(ranks, 999ms).has_value());
}

TEST(Watch, StoppedRankIsToBlameEvenIfAnotherIsFurtherBehind) {
  std::vector ranks = {waiting(0, 3, 3s), waiting(1, 3, 1s), idle(2, 1)};
  ranks[1].state = 'T';
  const auto blame = judge(ranks, 2s);
  ASSERT_TRUE(blame.has_value());
  EXPECT_EQ(blame->rank, 1);
  EXPECT_EQ(blame->how, Ending::stopped);
  EXPECT_EQ(blame->text,
            "rank 1 (pid 101) is stopped (state T), in operation 3 (case 4) for 1.0 s; rank 0 has waited 3.0 s in "
            "operation 3 (case 4)");
}

TEST(Watch, RankThatIsGoneIsToBlameButDoesNotHang) {
  std::vector ranks = {waiting(0, 2, 3s), waiting(1, 3, 3s)};
  ranks[1].state = 'Z';
  EXPECT_EQ(judge(ranks, 2s)->rank, 1);
  EXPECT_EQ(judge(ranks, 2s)->how, Ending::exited);
}

TEST(Watch, RankWithFewestOperationsIsToBlame) {
  const auto blame = judge(std::vector{waiting(0, 9, 3s), waiting(1, 8, 3s), idle(2, 9)}, 2s);
  EXPECT_EQ(blame->rank, 1);
  EXPECT_EQ(blame->how, Ending::hung);
}

TEST(Watch, IdleRankIsToBlameBeforeOneThatWaitsInTheSameOperation) {
  const auto blame = judge(std::vector{waiting(0, 9, 3s), idle(1, 9), waiting(2, 9, 4s)}, 2s);
  EXPECT_EQ(blame->rank, 1);
  EXPECT_THAT(blame->text, AllOf(HasSubstr("idle after operation 9"), HasSubstr("rank 2 has waited 4.0 s"),
                                 HasSubstr("(1 more wait)")));
}

TEST(Watch, AllRanksInOneOperationHaveNoCulprit) {
  const auto blame = judge(std::vector{waiting(0, 9, 3s), waiting(1, 9, 3s)}, 2s);
  EXPECT_EQ(blame->rank, -1);
  EXPECT_EQ(blame->how, Ending::hung);
}

TEST(Watch, AllRanksInOneOperationAreNamedOnlyAfterMorePatience) {
  const std::vector ranks = {waiting(0, 9, 3s), waiting(1, 9, 3s)};
  const auto after = [&](std::chrono::nanoseconds more) {
    return judge_hang({.ranks = ranks, .patience = 2s, .more_patience = more}, case_name);
  };
  EXPECT_FALSE(after(1s).has_value());
  ASSERT_TRUE(after(999ms).has_value());
  EXPECT_EQ(after(999ms)->text, "all 2 ranks hang in operation 9 (case 4), for 3.0 s; none of them is stopped");
  const std::vector behind = {waiting(0, 9, 3s), waiting(1, 8, 3s)};
  EXPECT_EQ(judge_hang({.ranks = behind, .patience = 2s, .more_patience = 1h}, case_name)->rank, 1)
      << "one that is behind needs no more patience";
}

/// Ranks 0 and 1 are on host a, 2 and 3 on b, 4 and 5 on c. This process is on a, and sees `ranks`.
std::optional<Blame> judge_on_a(const std::vector<RankView>& ranks, std::map<int, int> awaited,
                                std::chrono::nanoseconds more_patience = 1s) {
  const HostsInView hosts{.host_of = {0, 0, 1, 1, 2, 2}, .host_names = {"a", "b", "c"}, .awaited = std::move(awaited)};
  return judge_hang({.ranks = ranks, .patience = 2s, .more_patience = more_patience, .hosts = &hosts}, case_name);
}

TEST(HangOverHosts, OneOfThisHostThatDoesNotWaitIsToBlameAtOnce) {
  std::vector ranks = {waiting(0, 3, 3s), waiting(1, 3, 1s)};
  for (const auto& [state, how] : {std::pair('T', Ending::stopped), std::pair('Z', Ending::exited)}) {
    ranks[1].state = state;
    const auto blame = judge_on_a(ranks, {{0, 2}}, 1h);
    ASSERT_TRUE(blame.has_value());
    EXPECT_EQ(blame->rank, 1);
    EXPECT_EQ(blame->how, how);
  }
  EXPECT_EQ(judge_on_a({waiting(0, 3, 3s), idle(1, 2)}, {{0, 2}}, 1h)->rank, 1);
}

TEST(HangOverHosts, OneOfAnotherHostIsToBlameAfterMorePatience) {
  const std::vector ranks = {waiting(0, 3, 3s), waiting(1, 3, 4s)};
  EXPECT_FALSE(judge_on_a(ranks, {{0, 3}, {1, 0}}, 2s).has_value());
  const auto blame = judge_on_a(ranks, {{0, 3}, {1, 0}});
  ASSERT_TRUE(blame.has_value());
  EXPECT_EQ(blame->rank, 3);
  EXPECT_EQ(blame->how, Ending::hung);
  EXPECT_EQ(blame->text,
            "rank 3 on b is waited for, and no more is known of it here; rank 0 (pid 100) has waited 3.0 s in "
            "operation 3 (case 4) for it");
}

TEST(HangOverHosts, OneThatIsBehindMayWaitForAnotherHost) {
  EXPECT_EQ(judge_on_a({waiting(0, 3, 4s), waiting(1, 2, 4s)}, {{0, 1}, {1, 5}})->rank, 5);
  EXPECT_EQ(judge_on_a({waiting(0, 3, 4s)}, {{0, 5}})->rank, 5) << "it is the only one of its host";
}

TEST(HangOverHosts, WhoHasWaitedLongestForAnotherHostIsHeard) {
  EXPECT_EQ(judge_on_a({waiting(0, 3, 4s), waiting(1, 3, 5s)}, {{0, 2}, {1, 4}})->rank, 4);
}

TEST(HangOverHosts, TheEndOfTheChainOfWaitsIsToBlame) {
  const auto blame = judge_on_a({waiting(0, 3, 4s), waiting(1, 3, 4s)}, {{0, 2}, {1, 0}, {2, 3}, {3, 5}});
  ASSERT_TRUE(blame.has_value());
  EXPECT_EQ(blame->rank, 5);
  EXPECT_EQ(blame->text,
            "rank 5 on c is waited for, and no more is known of it here; rank 0 (pid 100) has waited 4.0 s in "
            "operation 3 (case 4) for rank 2 on b");
}

TEST(HangOverHosts, OfACycleTheNextIsNamed) {
  const std::vector ranks = {waiting(0, 3, 4s), waiting(1, 3, 4s)};
  EXPECT_EQ(judge_on_a(ranks, {{0, 2}, {2, 4}, {4, 2}})->rank, 2) << "without this host";
  EXPECT_EQ(judge_on_a(ranks, {{0, 2}, {2, 4}, {4, 0}})->rank, 2) << "over this host";
  EXPECT_EQ(judge_on_a(ranks, {{0, 2}, {2, 1}})->rank, 2)
      << "which ends here with one that has not said for whom it waits";
}

TEST(HangOverHosts, NobodyIsNamedIfNoWaitLeavesTheHost) {
  const std::vector ranks = {waiting(0, 3, 4s), waiting(1, 3, 5s)};
  for (const auto& awaited : {std::map<int, int>(), std::map<int, int>{{0, 1}, {1, 0}}}) {
    const auto blame = judge_on_a(ranks, awaited);
    ASSERT_TRUE(blame.has_value());
    EXPECT_EQ(blame->rank, -1);
    EXPECT_EQ(blame->text, "rank 1 (pid 101) has waited 5.0 s in operation 3 (case 4) for a rank that is not known");
  }
}

TEST(HangOverHosts, NobodyIsToBlameWithinThePatience) {
  EXPECT_FALSE(judge_on_a({waiting(0, 3, 2s), waiting(1, 3, 1s)}, {{0, 2}}, 0s).has_value());
  std::vector granted = {waiting(0, 3, 9s)};
  granted[0].granted = 7s;
  EXPECT_FALSE(judge_on_a(granted, {{0, 2}}, 0s).has_value());
}

TEST(Watch, EveryRankHasALineThoseToBlameFirst) {
  std::vector ranks = {waiting(0, 3, 3s), idle(1, 2), waiting(2, 3, 1s), waiting(3, 0, 0s)};
  ranks[2].state = 'T';
  const std::vector<RankStanding> standings{{"it is here"}, {"it is there"}, {"it is nowhere"}};
  EXPECT_EQ(describe_ranks(ranks, case_name, standings),
            "\n  rank 2 (pid 102): stopped (state T), in operation 3 (case 4) for 1.0 s; it is nowhere"
            "\n  rank 3 (pid 103): before its first operation"
            "\n  rank 1 (pid 101): idle after operation 2 (case 4); it is there"
            "\n  rank 0 (pid 100): in operation 3 (case 4) for 3.0 s; it is here");
  EXPECT_EQ(describe_ranks(std::vector{idle(0, 9)}, case_name),
            "\n  rank 0 (pid 100): idle after operation 9 (case 4)");
}

TEST(Watch, OfManyRanksThoseToBlameAreShown) {
  std::vector<RankView> ranks;
  for (int rank = 0; rank < 100; ++rank) ranks.push_back(waiting(rank, 3, 2s));
  ranks[70].operation = 2;
  const std::string text = describe_ranks(ranks, case_name);
  EXPECT_THAT(text, AllOf(testing::StartsWith("\n  rank 70 "), testing::EndsWith("\n  and 84 more")));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 17);
}

TEST(Board, AnnouncementsAreSeenUntilTheySettle) {
  constexpr int kRanks = 3;
  void* memory = std::aligned_alloc(4096, Board::bytes(kRanks));
  std::memset(memory, 0, Board::bytes(kRanks));
  const Board board(memory, kRanks);
  const std::vector<pid_t> pids(kRanks, ::getpid());
  EXPECT_EQ(longest_wait(board, monotonic_ns()).count(), 0);
  announce(board.status(1), Activity::exchange, 6);
  const std::int64_t later = board.status(1).pending_since_ns.load() + 5;
  EXPECT_EQ(longest_wait(board, later), 5ns);
  const std::vector<RankView> views = view_ranks(board, pids, later);
  EXPECT_EQ(views[0].waited, 0ns);
  EXPECT_EQ(views[1].waited, 5ns);
  EXPECT_EQ(views[1].operation, 1U);
  EXPECT_EQ(views[1].case_index, 6U);
  EXPECT_EQ(views[1].activity, Activity::exchange);
  renew(board.status(1), 7ns);
  const std::int64_t renewed = board.status(1).pending_since_ns.load();
  EXPECT_GE(renewed, later - 5);
  EXPECT_EQ(longest_wait(board, renewed + 9), 2ns);
  EXPECT_EQ(view_ranks(board, pids, renewed + 9)[1].waited, 9ns);
  EXPECT_EQ(view_ranks(board, pids, renewed + 9)[1].granted, 7ns);
  EXPECT_EQ(board.status(1).operation.load(), 1U);
  Standstill stood;
  stood.look(renewed + 2, renewed + 2'000'000'000);
  EXPECT_EQ(longest_wait(board, renewed + 2'000'000'019, stood), 14ns) << "7 ns of 21 are granted";
  EXPECT_EQ(view_ranks(board, pids, renewed + 2'000'000'019, stood)[1].waited, 21ns);
  EXPECT_EQ(view_ranks(board, pids, renewed + 2'000'000'019, stood)[0].waited, 0ns);
  announce(board.status(1), Activity::operation, 6);
  EXPECT_EQ(announced_on(board.status(1)).granted_ns, 0) << "it is another one";
  settle(board.status(1));
  renew(board.status(1), 7ns);
  EXPECT_EQ(longest_wait(board, later).count(), 0) << "nothing is pending";
  std::free(memory);
}

TEST(Board, NoTwoPartsOverlapAndAllAreInside) {
  constexpr int kRanks = 5;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(4096, Board::bytes(kRanks)));
  const Board board(memory, kRanks);
  std::vector<std::pair<std::size_t, std::size_t>> parts;  // begin, end
  const auto add = [&](const auto& part) {
    const auto begin = static_cast<std::size_t>(reinterpret_cast<const std::byte*>(&part) - memory);
    EXPECT_EQ(begin % alignof(decltype(part)), 0U);
    parts.emplace_back(begin, begin + sizeof(part));
  };
  add(board.abort_flag());
  add(board.stood_ns());
  for (int rank = 0; rank < kRanks; ++rank) {
    add(board.status(rank));
    add(board.sync(rank));
    add(board.probe(rank));
    add(board.page(rank));
  }
  const Board group = board.of_group({4, 0, 1, 2, 3});
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(&group.status(rank), &board.status(rank));
    add(group.sync(rank));
    add(group.probe(rank));
    add(group.page(rank));
  }
  EXPECT_EQ(&group.sync(0), &board.of_group({4}).sync(0)) << "the line of a rank, whatever its group";
  std::sort(parts.begin(), parts.end());
  for (std::size_t i = 1; i < parts.size(); ++i) EXPECT_LE(parts[i - 1].second, parts[i].first);
  EXPECT_LE(parts.back().second, Board::bytes(kRanks));
  std::free(memory);
}

}  // namespace
}  // namespace tutti::harness::launch
