// SPDX-License-Identifier: Apache-2.0
// Samples to which a rank came late do not count, on any runner; those after a barrier have nobody late.
#include "harness/measure/start.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/cases/sweep.h"
#include "harness/measure/block.h"
#include "harness/measure/cell.h"
#include "suites/unit/harness/measure/board_memory.h"
#include "suites/unit/harness/measure/lazy_backend.h"

namespace tutti::harness::measure {
namespace {

constexpr int kTwoRunners = 2;
constexpr auto kLate = std::chrono::milliseconds(40);  // longer than a runner is held up by others' work
const MemorySource kPlain = [](const Case&, std::size_t) { return plain_memory(); };

Case started_case(Collective collective) {
  Case one;
  one.collective = collective;
  one.backend = "lazy";
  one.ranks = kTwoRunners;
  one.ranks_as = RanksAs::threads;
  return one;
}

/// Does nothing, on each runner.
struct Idle {
  explicit Idle(Runner& runner, Collective collective = Collective::barrier)
      : variant(Variant::create(runner, {.backend = backend, .memory = kPlain, .instance = started_case(collective)})
                    .value()) {}
  LazyBackend backend{[](int) { return false; }};
  Variant variant;
};

Sample sample_of(double time_us, double late_us) {
  return {.global_us = time_us, .last_arrival_us = time_us, .late_us = late_us};
}

TEST(Start, ASampleIsLateByMoreThanTheToleranceAndByMoreThanOneInAHundred) {
  std::vector<Sample> samples{sample_of(10, 0.9), sample_of(10, 1.1), sample_of(10, -1), sample_of(500, 0.2)};
  EXPECT_EQ(mark_late(samples, {.least_us = 1}, 1), 0.25);
  EXPECT_THAT(samples,
              testing::ElementsAre(testing::Field(&Sample::is_valid, true), testing::Field(&Sample::is_valid, false),
                                   testing::Field(&Sample::is_valid, true), testing::Field(&Sample::is_valid, true)));
  EXPECT_EQ(mark_late(samples, {.least_us = 1}, 20), 0)
      << "a loop of 20 takes 200 us, of which 1.1 us are less than 1 %";
  samples[1].late_us.reset();
  EXPECT_EQ(mark_late(samples, {.least_us = 0.5}, 1), 0.25) << "the first one";
  EXPECT_TRUE(samples[1].is_valid) << "no instant was announced";
}

TEST(Start, WhoIsLateSpoilsASampleOnAllHosts) {
  constexpr int kCalls = 8;
  const BoardMemory memory(kTwoRunners);
  std::array<std::vector<Sample>, kTwoRunners> samples;
  int starts = 0;  // of runner 1
  on_runners(
      memory.board(), kTwoRunners,
      [&](Runner& runner) {
        Idle idle(runner);
        auto result =
            run_block(runner, idle.variant,
                      {.salt = 7, .samples = kCalls, .discarded = 2, .conditions = {.checking = Checking::none}});
        ASSERT_TRUE(result.is_ok()) << result.status().message();
        samples[static_cast<std::size_t>(runner.index())] = std::move(result).value().samples;
      },
      [&](int runner) {
        if (runner == 1 && starts++ % 4 == 3) std::this_thread::sleep_for(kLate);
      });
  for (const auto& of_host : samples) {
    ASSERT_EQ(of_host.size(), static_cast<std::size_t>(kCalls));
    for (const std::size_t late : {1U, 5U}) {
      EXPECT_FALSE(of_host[late].is_valid);
      EXPECT_GE(of_host[late].late_us, 40e3);
      EXPECT_EQ(of_host[late].arrived_last, 1);
    }
  }
  for (std::size_t i = 0; i < kCalls; ++i) {
    EXPECT_EQ(samples[0][i].is_valid, samples[1][i].is_valid);
    EXPECT_EQ(samples[0][i].late_us, samples[1][i].late_us);
  }
}

TEST(Start, TheLatenessThatWasAskedForIsNone) {
  const BoardMemory memory(kTwoRunners);
  on_runners(memory.board(), kTwoRunners, [&](Runner& runner) {
    Idle idle(runner);
    const auto result =
        run_block(runner, idle.variant,
                  {.salt = 7,
                   .samples = 6,
                   .discarded = 0,
                   .conditions = {.checking = Checking::none, .skew = std::chrono::nanoseconds(kLate)}});
    ASSERT_TRUE(result.is_ok()) << result.status().message();
    for (const Sample& sample : result.value().samples) {
      EXPECT_GE(sample.late_us, 0) << "who is asked to be late enters when it is";
    }
    EXPECT_LT(std::ranges::min(result.value().samples, {}, &Sample::late_us).late_us, 40e3) << "others may be held up";
  });
}

TEST(Start, NobodyBeginsBeforeAllHaveCome) {
  constexpr int kThree = 3, kRounds = 40;
  for (const auto sync : {Synchronisation::roundtime, Synchronisation::dissemination, Synchronisation::library}) {
    const BoardMemory memory(kThree);
    std::atomic<int> come = 0, announced = 0;
    on_runners(
        memory.board(), kThree,
        [&](Runner& runner) {
          Idle barrier(runner);
          barrier.backend.set_on_call([&] { EXPECT_TRUE(runner.pass_barrier().is_ok()); });
          for (int round = 1; round <= kRounds; ++round) {
            if (round % kThree == runner.index()) std::this_thread::sleep_for(std::chrono::microseconds(200));
            ++come;
            ASSERT_TRUE(start(runner, {.how = sync, .barrier = &barrier.variant}).is_ok());
            ASSERT_GE(come.load(), round * kThree) << to_string(sync);
          }
          EXPECT_EQ(barrier.backend.calls(), sync == Synchronisation::library ? kRounds : 0);
        },
        [&](int) { ++announced; });
    EXPECT_EQ(announced, sync == Synchronisation::roundtime ? kThree * kRounds : 0);
  }
}

/// Measures nothing on two runners of which the second is late to announced instants: to all, or to the first ones.
Row measured_late(Synchronisation sync, int starts, std::vector<Sample>* all) {
  const BoardMemory memory(kTwoRunners);
  Row row;
  on_runners(
      memory.board(), kTwoRunners,
      [&](Runner& runner) {
        Idle idle(runner), barrier(runner);
        barrier.backend.set_on_call([&] { static_cast<void>(runner.pass_barrier()); });
        std::vector<Variant> variants;
        variants.push_back(std::move(idle.variant));
        CellOptions options{.most_time = kLate, .conditions = {.checking = Checking::none, .sync = sync}};
        options.barrier_of = [&](const Case&) { return &barrier.variant; };
        options.on_samples = [&](const Case&, std::span<const Sample> samples) {
          all->assign(samples.begin(), samples.end());
          return Status();
        };
        const auto rows = measure_cell(runner, variants, options);
        ASSERT_TRUE(rows.is_ok()) << rows.status().message();
        if (runner.index() == 0) row = rows.value().front();
      },
      [&, started = 0](int runner) mutable {
        if (runner == 1 && started++ < starts) std::this_thread::sleep_for(kLate);
      });
  return row;
}
Row always_late(Synchronisation sync, std::vector<Sample>* all) { return measured_late(sync, 1'000'000, all); }

TEST(Start, WhereAllSamplesAreLateTheCellEndsAndItsRowSaysSo) {
  std::vector<Sample> all;
  const Row row = always_late(Synchronisation::roundtime, &all);
  EXPECT_EQ(row.conditions.at("sync"), "roundtime");
  EXPECT_EQ(row.samples, 0);
  EXPECT_EQ(row.time_median, std::nullopt);
  EXPECT_EQ(row.arrival_skew, std::nullopt);
  EXPECT_EQ(row.invalid_share, 1);
  EXPECT_TRUE(has_mark(row, kLateStarts));
  EXPECT_GT(all.size(), 0U);
  EXPECT_TRUE(std::ranges::none_of(all, &Sample::is_valid)) << "kept, and marked";
}

TEST(Start, WhereAllSamplesAreLateTheRowNamesTheRank) {
  std::vector<Sample> all;
  const Row row = always_late(Synchronisation::roundtime, &all);
  EXPECT_EQ(row.last_rank, 1);
  EXPECT_EQ(row.slowest_rank, 1);
}

TEST(Start, WhereTheTimeWasOverBeforeASampleCountsItIsTriedAgain) {
  std::vector<Sample> all;
  const Row row = measured_late(Synchronisation::roundtime, 6, &all);
  const auto counted = std::ranges::count_if(all, &Sample::is_valid);
  EXPECT_GE(row.samples, 1);
  EXPECT_EQ(row.samples, counted);
  EXPECT_TRUE(row.time_median.has_value());
  EXPECT_GE(std::ssize(all) - counted, 2) << "two blocks of a discarded call and a sample";
  EXPECT_DOUBLE_EQ(row.invalid_share.value_or(0),
                   static_cast<double>(std::ssize(all) - counted) / static_cast<double>(all.size()));
  EXPECT_EQ(has_mark(row, kLateStarts), *row.invalid_share > kMostLateSamples);
}

TEST(Start, AfterABarrierNobodyIsLate) {
  for (const auto sync : {Synchronisation::dissemination, Synchronisation::library}) {
    std::vector<Sample> all;
    const Row row = always_late(sync, &all);
    EXPECT_EQ(row.conditions.at("sync"), to_string(sync));
    EXPECT_GT(row.samples, 0);
    EXPECT_TRUE(row.time_median && row.arrival_skew && row.time_from_last && row.last_rank);
    EXPECT_EQ(row.invalid_share, std::nullopt);
    EXPECT_FALSE(has_mark(row, kLateStarts));
    EXPECT_TRUE(std::ranges::none_of(all, [](const Sample& one) { return one.late_us.has_value(); }));
  }
}

/// A barrier that tells how often it was run.
TEST(Start, InLibraryTheBarrierOfTheSystemRunsBeforeEachCall) {
  const BoardMemory memory(1);
  Runner runner(memory.board(), {.runner = 0, .runners = 1, .job_ranks = 1, .ranks = {0}});
  Idle idle(runner), barrier(runner);
  constexpr int kCalls = 5;
  const auto result = run_block(
      runner, idle.variant,
      {.salt = 7, .samples = kCalls, .start = {.how = Synchronisation::library, .barrier = &barrier.variant}});
  ASSERT_TRUE(result.is_ok()) << result.status().message();
  EXPECT_EQ(idle.backend.calls(), 2 + kCalls + 1);
  EXPECT_EQ(barrier.backend.calls(), idle.backend.calls());
}

}  // namespace
}  // namespace tutti::harness::measure
