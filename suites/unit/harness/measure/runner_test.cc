// SPDX-License-Identifier: Apache-2.0
// Hosts agree through the board: on threads, and alone where somebody does not come.
#include "harness/measure/runner.h"

#include <array>
#include <atomic>
#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/machine/clock.h"
#include "suites/unit/harness/measure/board_memory.h"

namespace tutti::harness::measure {
namespace {

constexpr int kRunners = 3;

struct Record {
  int runner;
  int round;
  std::array<char, 1000> rest;
};

TEST(Runner, AnExchangeGivesEveryHostEveryRecordRoundAfterRound) {
  const BoardMemory memory(kRunners);
  on_runners(memory.board(), kRunners, [](Runner& runner) {
    for (int round = 0; round < 200; ++round) {
      Record mine{.runner = runner.index(), .round = round, .rest = {}};
      mine.rest.fill(static_cast<char>(round + runner.index()));
      const auto all = runner.exchange(mine);
      ASSERT_TRUE(all.is_ok()) << all.status().message();
      ASSERT_EQ(all.value().size(), static_cast<std::size_t>(kRunners));
      for (int other = 0; other < kRunners; ++other) {
        const Record& record = all.value()[static_cast<std::size_t>(other)];
        ASSERT_EQ(record.runner, other);
        ASSERT_EQ(record.round, round);
        ASSERT_EQ(record.rest.back(), static_cast<char>(round + other));
      }
    }
  });
}

TEST(Runner, ARankOfAGroupAnnouncesItselfAtItsPlaceInTheJob) {
  const BoardMemory memory(4);
  const Board board = memory.board();
  Runner runner(board, {.runner = 3, .runners = 4, .job_ranks = 4, .ranks = {1}, .group = 1, .places = {3}});
  const auto is_pending = [&](int place) { return board.status(place).pending_since_ns.load() != 0; };
  runner.announce(Activity::operation);
  EXPECT_EQ(board.status(3).operation.load(), 1U);
  EXPECT_TRUE(is_pending(3));
  EXPECT_FALSE(is_pending(1));
  runner.settle();
  EXPECT_FALSE(is_pending(3));
}

TEST(Runner, AllAgreeOnWhatHostZeroSays) {
  const BoardMemory memory(kRunners);
  on_runners(memory.board(), kRunners, [](Runner& runner) {
    for (int round = 0; round < 50; ++round) {
      const auto value = runner.agree(100 * runner.index() + round);
      ASSERT_TRUE(value.is_ok()) << value.status().message();
      ASSERT_EQ(value.value(), round);
    }
  });
}

TEST(Runner, AllTakeTheReasonOfTheFirstHostThatHasOne) {
  const BoardMemory memory(kRunners);
  on_runners(memory.board(), kRunners, [](Runner& runner) {
    const auto none = runner.first_reason({});
    ASSERT_TRUE(none.is_ok()) << none.status().message();
    EXPECT_FALSE(none.value().is_any());
    EXPECT_EQ(none.value().code, Code::ok);
    EXPECT_EQ(none.value().text(), "");
    const auto mine = runner.index() == 0   ? Status()
                      : runner.index() == 1 ? error(Code::resource, "no memory")
                                            : error(Code::unavailable, "no backend");
    const auto first = runner.first_reason(mine);
    ASSERT_TRUE(first.is_ok()) << first.status().message();
    EXPECT_TRUE(first.value().is_any());
    EXPECT_EQ(first.value().code, Code::resource);
    EXPECT_EQ(first.value().text(), "no memory");
  });
}

TEST(Runner, AReasonThatTellsTheCauseGoesBeforeThoseOfEarlierHosts) {
  struct Told {
    Reason why;
  };
  const Told nothing, late{Reason::of(3, "late")}, lost{Reason::of(1, "lost", true)}, cut{Reason::of(2, "cut", true)};
  const auto first = [](const std::vector<Told>& all) { return first_reason(all, &Told::why).text(); };
  EXPECT_EQ(first({nothing, late, lost, cut}), "lost");
  EXPECT_EQ(first({nothing, {Reason::of(1, "odd")}, late}), "odd");
  EXPECT_EQ(first({nothing, {Reason::of(0, "nothing is wrong", true)}}), "");
}

TEST(Runner, ALongReasonIsCut) {
  const std::string text = Reason::of(1, std::string(5000, 'x')).text();
  EXPECT_EQ(text, std::string(text.size(), 'x'));
  EXPECT_GE(text.size(), 900U);
  EXPECT_LT(text.size(), 5000U);
}

TEST(Runner, AllStartAtOneInstantAndNobodyBeforeIt) {
  const BoardMemory memory(kRunners);
  on_runners(memory.board(), kRunners, [](Runner& runner) {
    std::int64_t last = 0;
    for (int round = 0; round < 50; ++round) {
      const auto instant = runner.start_together();
      const std::int64_t now = monotonic_ns();
      ASSERT_TRUE(instant.is_ok()) << instant.status().message();
      ASSERT_GE(now, instant.value());
      ASSERT_GT(instant.value(), last);
      last = instant.value();
      const auto announced = runner.agree(instant.value());
      ASSERT_TRUE(announced.is_ok());
      ASSERT_EQ(announced.value(), instant.value());
    }
  });
}

TEST(Runner, NobodyLeavesABarrierBeforeAllHaveCome) {
  for (const int runners : {2, 3, 5, 8}) {
    constexpr int kRounds = 50;
    const BoardMemory memory(runners);
    std::atomic<int> came = 0;
    on_runners(memory.board(), runners, [&](Runner& runner) {
      for (int round = 1; round <= kRounds; ++round) {
        if ((round + runner.index()) % 7 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
        ++came;
        ASSERT_TRUE(runner.pass_barrier().is_ok());
        ASSERT_GE(came, round * runners) << runners << " runners";
      }
    });
  }
}

TEST(Runner, AfterABarrierAllKnowWhenTheFirstHostCameToIt) {
  const BoardMemory memory(kRunners);
  on_runners(memory.board(), kRunners, [](Runner& runner) {
    std::int64_t last = 0;
    for (int round = 0; round < 100; ++round) {
      const bool is_announced = round % 10 == 3;  // both ways in one run
      const Status started =
          is_announced ? runner.start_together().status() : runner.start_after([&] { return runner.pass_barrier(); });
      ASSERT_TRUE(started.is_ok()) << started.message();
      const std::int64_t now = monotonic_ns();
      const auto instant = runner.last_start();
      ASSERT_TRUE(instant.is_ok());
      ASSERT_LE(instant.value(), now);
      ASSERT_GT(instant.value(), last);
      last = instant.value();
      ASSERT_EQ(runner.agree(last).value(), last);
    }
  });
}

TEST(Runner, AloneItWaitsForNobody) {
  const BoardMemory memory(1);
  Runner runner(memory.board(), runner_options(0, 1));
  EXPECT_THAT(runner.exchange(42).value(), testing::ElementsAre(42));
  EXPECT_EQ(runner.agree(43).value(), 43);
  const std::int64_t instant = runner.start_together().value();
  EXPECT_EQ(runner.last_start().value(), instant);
  EXPECT_TRUE(runner.pass_barrier().is_ok());
  EXPECT_EQ(runner.probe().value().line_ns, std::nullopt);
}

TEST(Runner, TheLineIsProbedBetweenTheFirstAndTheLastAndKnownToAll) {
  const BoardMemory memory(2);
  std::array<double, 2> lines{};
  std::vector<std::thread> threads;
  for (int index = 0; index < 2; ++index) {
    threads.emplace_back([&, index] {
      RunnerOptions options = runner_options(index, 2);
      options.yields = false;
      Runner runner(memory.board(), options);
      const auto trips = runner.probe();
      ASSERT_TRUE(trips.is_ok()) << trips.status().message();
      ASSERT_TRUE(trips.value().line_ns.has_value());
      EXPECT_FALSE(trips.value().net_ns.has_value());
      lines[static_cast<std::size_t>(index)] = *trips.value().line_ns;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(lines[0], 0);
  EXPECT_EQ(lines[0], lines[1]);
}

TEST(Runner, WhereRanksOutnumberCoresNoLineIsProbed) {
  const BoardMemory memory(2);
  Runner runner(memory.board(), runner_options(0, 2));  // alone: it would wait if it probed
  EXPECT_EQ(runner.probe().value().line_ns, std::nullopt);
}

TEST(Runner, BesideACrowdItSpinsAndMayBeAsLateAsWhereRanksOutnumberCores) {
  const BoardMemory memory(2);
  const Runner crowded(memory.board(), runner_options(0, 2));
  RunnerOptions options = runner_options(0, 2);
  options.yields = false;
  EXPECT_LT(Runner(memory.board(), options).in_time_ns(), crowded.in_time_ns());
  options.has_crowd = true;
  Runner runner(memory.board(), options);  // alone: it would wait if it probed
  EXPECT_FALSE(runner.yields());
  EXPECT_EQ(runner.in_time_ns(), crowded.in_time_ns());
  EXPECT_EQ(runner.probe().value().line_ns, std::nullopt);
}

// ---- ranks that do not come

Status missing(int index, const std::function<Status(Runner&)>& wait) {
  const BoardMemory memory(kRunners);
  RunnerOptions options = runner_options(index, kRunners);
  options.timeout = std::chrono::milliseconds(5);
  Runner runner(memory.board(), options);
  return wait(runner);
}

TEST(Runner, WhoDoesNotComeIsNamedAtTheDeadline) {
  const auto exchange = [](Runner& runner) { return runner.exchange(1).status(); };
  const auto start = [](Runner& runner) { return runner.start_together().status(); };
  EXPECT_EQ(missing(0, exchange).code(), Code::timeout);
  EXPECT_EQ(missing(0, exchange).message(), "rank 1 did not come to an exchange");
  EXPECT_EQ(missing(2, exchange).message(), "rank 0 did not come to an exchange");
  EXPECT_EQ(missing(0, start).message(), "rank 1 did not come to the start of a sample");
  EXPECT_EQ(missing(1, start).message(), "rank 0 did not come to the start of a sample");
  const auto barrier = [](Runner& runner) { return runner.pass_barrier(); };
  EXPECT_EQ(missing(0, barrier).message(), "rank 2 did not come to a barrier");
}

TEST(Runner, InAnExchangeTheBoardSaysWhoseRecordIsAwaited) {
  const BoardMemory memory(kRunners);
  const Board board = memory.board();
  Runner runner(board, {.runner = 0,
                        .runners = kRunners,
                        .job_ranks = kRunners,
                        .ranks = {0},
                        .timeout = std::chrono::milliseconds(20)});
  EXPECT_EQ(runner.exchange(1).status().code(), Code::timeout);
  EXPECT_EQ(board.status(0).awaited.load(), 2) << "1 and the number of the runner that did not come";
  runner.announce(Activity::operation);
  EXPECT_EQ(board.status(0).awaited.load(), 0);
}

TEST(Runner, PollsUntilAllIsThereAndLooksAroundNowAndThen) {
  const BoardMemory memory(1);
  Runner runner(memory.board(), runner_options(0, 1));
  int looks = 0, looks_around = 0;
  const auto wait = [&](int turns, const Status& around) {
    looks = looks_around = 0;
    return runner.poll([&]() -> Result<Turn> { return ++looks == turns ? Turn::done : Turn(looks % 2); },
                       [&] {
                         ++looks_around;
                         return around;
                       });
  };
  EXPECT_TRUE(wait(1, {}).is_ok());
  EXPECT_EQ(looks, 1);
  EXPECT_EQ(looks_around, 0);
  EXPECT_TRUE(wait(10'000, {}).is_ok());
  EXPECT_EQ(looks, 10'000);
  EXPECT_GT(looks_around, 1);
  EXPECT_LT(looks_around, looks / 10);
  EXPECT_EQ(wait(10'000, error(Code::timeout, "late")).message(), "late");
  EXPECT_EQ(looks_around, 1);
  EXPECT_LT(looks, 10'000);
  const auto fails = [] { return Result<Turn>(error(Code::io, "broken")); };
  EXPECT_EQ(runner.poll(fails, [] { return Status(); }).message(), "broken");
}

TEST(Runner, LooksOnceMoreWhenTheTimeIsOver) {
  const BoardMemory memory(1);
  Runner runner(memory.board(), runner_options(0, 1));
  const std::int64_t end_ns = monotonic_ns() + 1'000'000;
  std::int64_t last_ns = 0;
  const auto look = [&] {
    last_ns = monotonic_ns();
    return Status();
  };
  EXPECT_TRUE(runner.look_for(1'000'000, look).is_ok());
  EXPECT_GE(last_ns, end_ns);
  EXPECT_EQ(runner.look_for(1'000'000, [] { return error(Code::io, "broken"); }).message(), "broken");
}

TEST(Runner, AJobThatWasGivenUpEndsEveryWait) {
  const auto given_up = [](const std::function<Status(Runner&)>& wait) {
    const BoardMemory memory(kRunners);
    memory.board().abort_flag().store(1);
    Runner runner(memory.board(), runner_options(1, kRunners));
    return wait(runner);
  };
  EXPECT_EQ(given_up([](Runner& runner) { return runner.exchange(1).status(); }).code(), Code::aborted);
  EXPECT_EQ(given_up([](Runner& runner) { return runner.start_together().status(); }).code(), Code::aborted);
  EXPECT_EQ(given_up([](Runner& runner) { return runner.pass_barrier(); }).code(), Code::aborted);
  EXPECT_EQ(given_up([](Runner& runner) { return runner.check_abort(); }).code(), Code::aborted);
}

// ---- the launcher's view

TEST(Runner, WhatItIsAboutToDoStandsOnTheBoardForEachOfItsRanks) {
  const BoardMemory memory(kRunners);
  const Board board = memory.board();
  Runner runner(board, {.runner = 0, .runners = 1, .job_ranks = kRunners, .ranks = {0, 2}});
  runner.set_case(7);
  runner.announce(Activity::operation);
  for (const int rank : {0, 2}) {
    EXPECT_NE(board.status(rank).pending_since_ns.load(), 0);
    EXPECT_EQ(board.status(rank).operation.load(), 1U);
    EXPECT_EQ(board.status(rank).case_index.load(), 7U);
    EXPECT_EQ(board.status(rank).activity.load(), static_cast<std::uint32_t>(Activity::operation));
  }
  EXPECT_EQ(board.status(1).operation.load(), 0U) << "another runner's rank";
  runner.settle();
  for (const int rank : {0, 2}) {
    EXPECT_EQ(board.status(rank).pending_since_ns.load(), 0);
    EXPECT_EQ(board.status(rank).activity.load(), static_cast<std::uint32_t>(Activity::idle));
  }
}

}  // namespace
}  // namespace tutti::harness::measure
