// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/contention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/unit/harness/measure/board_memory.h"
#include "suites/unit/harness/measure/lazy_backend.h"

namespace tutti::harness::measure {
namespace {

constexpr int kRunners = 4;
const std::vector<std::vector<int>> kOddAndEven{{0, 2}, {1, 3}};

int group_of_runner(int runner) { return runner % 2; }

TEST(Contention, GroupsAgreeAmongThemselvesAndAllRunnersBetween) {
  const BoardMemory memory(kRunners);
  std::array<std::vector<int>, kRunners> seen_in_group, seen_by_all;
  on_runners(memory.board(), kRunners, [&](Runner& world) {
    const auto index = static_cast<std::size_t>(world.index());
    const int group = group_of_runner(world.index());
    Runner own = runner_in_group(world, group, kOddAndEven[static_cast<std::size_t>(group)]);
    EXPECT_EQ(own.count(), 2);
    EXPECT_EQ(own.group(), group);
    for (int round = 0; round < 50; ++round) {
      if (group == 1 && round % 3 == 0) continue;  // the groups do not take the same steps
      seen_in_group[index] = own.exchange(10 * world.index()).value();
      EXPECT_TRUE(own.start_together().is_ok());
      EXPECT_TRUE(own.pass_barrier().is_ok());
    }
    seen_by_all[index] = world.exchange(world.index()).value();
  });
  for (int runner = 0; runner < kRunners; ++runner) {
    const auto index = static_cast<std::size_t>(runner);
    EXPECT_THAT(seen_in_group[index], testing::ElementsAre(10 * (runner % 2), 10 * (runner % 2 + 2)));
    EXPECT_THAT(seen_by_all[index], testing::ElementsAre(0, 1, 2, 3));
  }
}

TEST(Contention, ATextOfAnyLengthReachesAllRunners) {
  const std::string text(5000, 'a');
  for (const std::string& mine : {std::string(), std::string("short"), text + "b" + text}) {
    const BoardMemory memory(kRunners);
    on_runners(memory.board(), kRunners, [&](Runner& world) {
      const auto got = text_of_runner(world, 2, world.index() == 2 ? mine : "of another");
      ASSERT_TRUE(got.is_ok()) << got.status().message();
      EXPECT_EQ(got.value(), mine);
    });
  }
}

/// A series whose rounds have blocks of one sample each; 0: the round has none.
Series series_of(const std::vector<double>& medians_us) {
  Series series;
  for (std::size_t round = 0; round < medians_us.size(); ++round) {
    if (medians_us[round] == 0) continue;
    Sample sample;
    sample.global_us = medians_us[round];
    series.blocks.push_back({.samples = {sample}, .trips = {}, .round = static_cast<int>(round)});
  }
  return series;
}

TEST(Contention, SlowdownIsTheMiddleOfTheRatiosOfTheRounds) {
  const Contended both{.alone = series_of({1, 2, 4, 8, 16, 32, 5}), .together = series_of({2, 4, 8, 16, 32, 64, 0})};
  const auto slowdown = slowdown_of(both, {});
  ASSERT_TRUE(slowdown && slowdown->low && slowdown->high);
  EXPECT_NEAR(slowdown->middle, 2, 1e-12) << "whatever the rounds have in common";
  EXPECT_NEAR(*slowdown->low, 2, 1e-12);
  EXPECT_NEAR(*slowdown->high, 2, 1e-12);
}

TEST(Contention, OfFiveRoundsThereIsNoInterval) {
  const auto slowdown = slowdown_of({.alone = series_of({1, 1, 1, 1, 1}), .together = series_of({1, 2, 3, 2, 1})}, {});
  ASSERT_TRUE(slowdown);
  EXPECT_FALSE(slowdown->low || slowdown->high);
  EXPECT_GT(slowdown->middle, 1);
}

TEST(Contention, WithoutACommonRoundThereIsNoSlowdown) {
  EXPECT_FALSE(slowdown_of({.alone = series_of({1, 0}), .together = series_of({0, 1})}, {}));
}

/// What the runner of each group has of a system that works if its group's entry says so.
std::array<Contended, kRunners> measure(std::array<bool, 2> works, const CellOptions& given,
                                        std::chrono::milliseconds more_on_each = {}) {
  const BoardMemory memory(kRunners);
  std::array<Contended, kRunners> all;
  const std::vector<int> group_of_all{0, 1, 0, 1};
  on_runners(memory.board(), kRunners, [&](Runner& world) {
    const auto index = static_cast<std::size_t>(world.index());
    const auto group = static_cast<std::size_t>(group_of_runner(world.index()));
    CellOptions options = given;
    options.most_time += more_on_each * world.index();
    RunnerOptions seat = runner_in_group(world, static_cast<int>(group), kOddAndEven[group]).options();
    seat.ranks = {0};  // each runner has a call of one rank, which needs no other
    Runner own(world.board().of_group(kOddAndEven[group]), seat);
    LazyBackend backend([&](int) { return works[group]; });
    Case one;
    one.collective = Collective::all_to_all;
    one.backend = backend.name();
    one.ranks = 1;
    one.ranks_as = RanksAs::threads;
    one.count = 100;
    one.bytes = buffer_bytes(one.problem(), one.count, size_of(one.dtype));
    std::vector<Variant> variants;
    auto variant = Variant::create(
        own, {.backend = backend, .memory = [](const Case&, std::size_t) { return plain_memory(); }, .instance = one});
    ASSERT_TRUE(variant.is_ok()) << variant.status().message();
    variants.push_back(std::move(variant).value());
    auto contended =
        contend({.world = world, .group = own, .group_of_all = group_of_all, .groups = 2}, variants, options);
    ASSERT_TRUE(contended.is_ok()) << contended.status().message();
    all[index] = std::move(contended.value().front());
  });
  return all;
}

TEST(Contention, EachRoundHasABlockAloneAndOneTogether) {
  const auto all = measure({true, true}, {.most_time = std::chrono::milliseconds(1)});
  for (const Contended& one : all) {
    EXPECT_EQ(one.alone.wrong + one.together.wrong, 0) << one.alone.reason << one.together.reason;
    ASSERT_FALSE(one.alone.blocks.empty());
    ASSERT_FALSE(one.together.blocks.empty());
    EXPECT_EQ(one.alone.blocks.front().round, 0);
    EXPECT_EQ(one.together.blocks.front().round, 0);
  }
  EXPECT_EQ(all[0].together.blocks.size(), all[1].together.blocks.size()) << "together all groups take the same steps";
}

TEST(Contention, RunnersThatFindAnotherTimeLeftTakeTheSameSteps) {
  const auto all = measure({true, true}, {.most_time = std::chrono::milliseconds(20)}, std::chrono::milliseconds(40));
  for (const Contended& one : all) EXPECT_EQ(one.together.blocks.size(), all[0].together.blocks.size());
}

TEST(Contention, AWrongResultIsOfItsGroupOnly) {
  const auto all = measure({true, false}, {.most_time = std::chrono::milliseconds(1)});
  EXPECT_EQ(all[0].alone.wrong + all[0].together.wrong, 0) << all[0].alone.reason;
  EXPECT_GT(all[1].alone.wrong, 0);
  EXPECT_GT(all[3].together.wrong, 0);
}

TEST(Contention, IterationsAreOfEachRow) {
  CellOptions options{.most_time = std::chrono::hours(1)};
  options.conditions.iterations = 10;
  options.conditions.sync = Synchronisation::dissemination;
  for (const Contended& one : measure({true, true}, options)) {
    EXPECT_GE(times_of(one.alone, options).size(), 10U);
    EXPECT_GE(times_of(one.together, options).size(), 10U);
  }
}

}  // namespace
}  // namespace tutti::harness::measure
