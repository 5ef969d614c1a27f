// SPDX-License-Identifier: Apache-2.0
// A cell's verdict holds against systems that count their calls and work in a few of them.
#include "harness/measure/cell.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/cases/sweep.h"
#include "suites/unit/harness/measure/board_memory.h"
#include "suites/unit/harness/measure/lazy_backend.h"

namespace tutti::harness::measure {
namespace {

constexpr int kCellRanks = 2;

Case case_of(const Backend& backend) {
  Case one;
  one.collective = Collective::all_to_all;
  one.backend = backend.name();
  one.ranks = kCellRanks;
  one.ranks_as = RanksAs::tasks;
  one.count = 100;
  one.bytes = buffer_bytes(one.problem(), one.count, size_of(one.dtype));
  return one;
}

/// Measures one cell in which each of `backends` has a variant, on one host with all ranks.
std::vector<Row> measure(std::vector<LazyBackend*> backends, const CellOptions& options) {
  const BoardMemory memory(kCellRanks);
  Runner runner(memory.board(), {.runner = 0, .runners = 1, .job_ranks = kCellRanks, .ranks = {0, 1}});
  std::vector<Variant> variants;
  for (LazyBackend* backend : backends) {
    auto variant = Variant::create(runner, {.backend = *backend,
                                            .memory = [](const Case&, std::size_t) { return plain_memory(); },
                                            .instance = case_of(*backend)});
    EXPECT_TRUE(variant.is_ok()) << variant.status().message();
    variants.push_back(std::move(variant).value());
  }
  auto rows = measure_cell(runner, variants, options);
  EXPECT_TRUE(rows.is_ok()) << rows.status().message();
  return std::move(rows).value();
}

Row measure(Works works) {
  LazyBackend backend(std::move(works));
  return measure({&backend}, {.most_time = std::chrono::milliseconds(50)}).front();
}

TEST(Cell, RowsHaveTheirShareOfTheLimitWhichHasNoRow) {
  LazyBackend system([](int) { return true; }), limit([](int) { return true; });
  const auto rows = measure({&system, &limit}, {.most_time = std::chrono::milliseconds(50), .limits = {"movements"}});
  ASSERT_EQ(rows.size(), 1U);
  ASSERT_TRUE(rows[0].limit_time && rows[0].limit_fraction);
  EXPECT_DOUBLE_EQ(*rows[0].limit_fraction, *rows[0].limit_time / *rows[0].time_median);
  EXPECT_EQ(has_mark(rows[0], kLimitTooLow), *rows[0].limit_fraction > 1.05);
}

TEST(Cell, WhatIsWrongIsNoLimit) {
  LazyBackend system([](int) { return true; }), limit([](int) { return false; });
  const auto rows = measure({&system, &limit}, {.most_time = std::chrono::milliseconds(50), .limits = {"movements"}});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].verdict, Verdict::ok);
  EXPECT_FALSE(rows[0].limit_time || rows[0].limit_fraction);
  EXPECT_THAT(rows[0].reason, testing::StartsWith("no limit: its own result was wrong: ")) << "a failure of ours";
}

TEST(Cell, PassesASystemThatWorksInEveryCall) {
  const Row row = measure([](int) { return true; });
  EXPECT_EQ(row.verdict, Verdict::ok) << row.reason;
  EXPECT_EQ(row.wrong, 0);
  EXPECT_GT(row.samples, 0);
}

TEST(Cell, CatchesASystemThatWorksInTheDiscardedCallsOnly) {
  const Row row = measure([](int number) { return number % 22 < 2; });
  EXPECT_EQ(row.verdict, Verdict::wrong);
}

TEST(Cell, CatchesASystemThatAlsoWorksInTheFirstSample) {
  for (const int period : {22, 23}) {
    const Row row = measure([&](int number) { return number % period < 3; });
    EXPECT_EQ(row.verdict, Verdict::wrong) << period;
  }
}

TEST(Cell, ASystemThatCountsCannotTellWhichCallIsVerified) {
  // Were all blocks of 2 + 20 + 1 calls, this one would pass.
  const Row row = measure([](int number) { return number % 23 < 2 || number % 23 == 22; });
  EXPECT_EQ(row.verdict, Verdict::wrong);
}

Row measure(Works works, Checking checking) {
  LazyBackend backend(std::move(works));
  return measure({&backend}, {.most_time = std::chrono::milliseconds(50), .conditions = {.checking = checking}})
      .front();
}

TEST(Cell, CanVerifyEverySample) {
  const auto works = [](int number) { return number % 10 != 7; };  // one or two calls in a block do nothing
  const Row row = measure(works, Checking::every);
  EXPECT_EQ(row.verdict, Verdict::wrong);
  EXPECT_EQ(row.checked_on, "every timed");
  EXPECT_EQ(*row.wrong % (2 * 200), 0) << "of each such call all elements of both ranks are wrong";
  EXPECT_EQ(measure([](int) { return true; }, Checking::every).verdict, Verdict::ok);
}

TEST(Cell, JudgesEverySampleOfABarrierUnlessNothingIsToBeVerified) {
  const BoardMemory memory(kCellRanks);
  Runner runner(memory.board(), {.runner = 0, .runners = 1, .job_ranks = kCellRanks, .ranks = {0, 1}});
  for (const Checking checking : {Checking::every, Checking::sample, Checking::none}) {
    LazyBackend backend([](int) { return false; });  // nobody waits for the rank that comes late
    Case one;
    one.backend = backend.name();
    one.ranks = kCellRanks;
    one.ranks_as = RanksAs::tasks;
    ASSERT_EQ(one.collective, Collective::barrier);
    std::vector<Variant> variants;
    variants.push_back(Variant::create(runner, {.backend = backend,
                                                .memory = [](const Case&, std::size_t) { return plain_memory(); },
                                                .instance = one})
                           .value());
    const auto rows = measure_cell(runner, variants,
                                   {.most_time = std::chrono::milliseconds(20),
                                    .conditions = {.checking = checking, .skew = std::chrono::microseconds(300)}});
    ASSERT_TRUE(rows.is_ok()) << rows.status().message();
    const Row& row = rows.value().front();
    const bool is_judged = checking != Checking::none;
    EXPECT_EQ(to_string(row.verdict), is_judged ? "wrong" : "unchecked") << to_string(checking);
    EXPECT_EQ(row.wrong >= row.samples, is_judged) << to_string(checking);
  }
}

TEST(Cell, SaysThatNothingWasVerifiedWhereNothingWas) {
  const Row row = measure([](int) { return false; }, Checking::none);
  EXPECT_EQ(row.verdict, Verdict::unchecked);
  EXPECT_EQ(row.checked_on, "");
  EXPECT_EQ(row.reason, "--check none");
  EXPECT_FALSE(row.wrong.has_value()) << "not 0 of nothing";
  EXPECT_GT(row.samples, 0);
}

TEST(Cell, AStreamSaysHowManyOperationsASampleHasAndWhatWasChecked) {
  const BoardMemory memory(kCellRanks);
  Runner runner(memory.board(), {.runner = 0, .runners = 1, .job_ranks = kCellRanks, .ranks = {0, 1}});
  for (const bool is_in_place : {false, true}) {
    LazyBackend backend([](int) { return true; });
    Case one = case_of(backend);
    one.cadence = Cadence::streaming;
    one.is_in_place = is_in_place;
    std::vector<Variant> variants;
    variants.push_back(Variant::create(runner, {.backend = backend,
                                                .memory = [](const Case&, std::size_t) { return plain_memory(); },
                                                .instance = one})
                           .value());
    const auto rows = measure_cell(runner, variants, {.most_time = std::chrono::milliseconds(50)});
    ASSERT_TRUE(rows.is_ok()) << rows.status().message();
    const Row& row = rows.value().front();
    EXPECT_EQ(row.verdict, Verdict::ok) << row.reason;
    EXPECT_EQ(row.cadence, "streaming");
    EXPECT_EQ(row.checked_on, is_in_place ? "further" : "timed");
    EXPECT_GE(row.operations, 4);
    EXPECT_GE(backend.calls(), row.operations * row.samples);
  }
}

TEST(Cell, EveryVariantHasASampleAlsoWhereThereIsNoTime) {
  const auto always = [](int) { return true; };
  LazyBackend one(always), other(always);
  const std::vector<Row> rows = measure({&one, &other}, {.most_time = std::chrono::nanoseconds(0)});
  ASSERT_EQ(rows.size(), 2U);
  for (const Row& row : rows) {
    EXPECT_EQ(row.verdict, Verdict::ok) << row.reason;
    EXPECT_EQ(row.samples, 1);
  }
  EXPECT_EQ(one.calls() + other.calls(), 4);
}

TEST(Cell, WhatDoesNotSettleIsNoisyAndWhatIsShortIsNearTheFloor) {
  int calls = 0;
  LazyBackend restless([](int) { return true; }), short_of_time([](int) { return true; });
  restless.set_on_call([&] { std::this_thread::sleep_for(std::chrono::microseconds(++calls % 2 == 0 ? 50 : 400)); });
  const Row noisy = measure({&restless}, {.most_time = std::chrono::milliseconds(30)}).front();
  EXPECT_TRUE(has_mark(noisy, kNoisy)) << noisy.time_ci_low.value_or(0) << " " << noisy.time_ci_high.value_or(0);
  EXPECT_FALSE(has_mark(noisy, kNearFloor));
  const CellOptions high{.most_time = std::chrono::milliseconds(5),
                         .floor_us_of = [](const Case& one) { return one.backend == "lazy" ? 1e6 : 0; }};
  EXPECT_TRUE(has_mark(measure({&short_of_time}, high).front(), kNearFloor));
}

TEST(Cell, WarmsUpOnceAndHandsOverEverySample) {
  LazyBackend backend([](int) { return true; });
  std::vector<Sample> all;
  const CellOptions options{.most_time = std::chrono::milliseconds(50),
                            .on_samples = [&](const Case& one, std::span<const Sample> samples) {
                              EXPECT_EQ(one.backend, backend.name());
                              all.assign(samples.begin(), samples.end());
                              return Status();
                            }};
  const Row row = measure({&backend}, options).front();
  EXPECT_GE(row.warm_up, 16) << "a batch of four, and three that are no better";
  EXPECT_EQ(row.samples, std::ranges::count_if(all, &Sample::is_valid));
  EXPECT_LT(std::ssize(all), backend.calls() - row.warm_up);
  for (const Sample& one : all) {
    ASSERT_EQ(one.rank_us.size(), static_cast<std::size_t>(kCellRanks));
    EXPECT_LE(std::ranges::max(one.rank_us), one.global_us + 1e-9);
    EXPECT_NEAR(one.last_arrival_us + one.skew_us, one.global_us, 1e-9);
  }
}

TEST(Cell, IterationsAreSharedOutToAsManyBlocksAsAreAskedFor) {
  for (const auto& [asked, wanted] : {std::pair{2, 2}, std::pair{0, 8}}) {
    LazyBackend backend([](int) { return true; });
    std::vector<int> blocks;
    const auto keep = [&blocks](const Case&, std::span<const Sample> samples) {
      for (const Sample& sample : samples) blocks.push_back(sample.block);
      return Status();
    };
    const Row row = measure({&backend}, {.most_time = std::chrono::seconds(30),
                                         .conditions = {.iterations = 8},
                                         .blocks = asked,
                                         .on_samples = keep})
                        .front();
    EXPECT_EQ(row.verdict, Verdict::ok) << row.reason;
    ASSERT_GE(blocks.size(), 8U);
    EXPECT_EQ(std::ranges::count(blocks, 0), 8 / wanted) << asked;
  }
}

TEST(Cell, ASlowVariantLeavesTimeToTheOthers) {
  constexpr auto kMost = std::chrono::milliseconds(80);
  const auto always = [](int) { return true; };
  for (const bool is_slow_listed_first : {true, false}) {  // one of them comes first, whatever the order is
    LazyBackend slow(always), quick(always);
    int before_quick = 0;
    slow.set_on_call([&] { std::this_thread::sleep_for(kMost / 8); });
    quick.set_on_call([&] {
      if (quick.calls() == 0) before_quick = slow.calls();
    });
    const auto order = is_slow_listed_first ? std::vector{&slow, &quick} : std::vector{&quick, &slow};
    const std::vector<Row> rows = measure(order, {.most_time = kMost});
    EXPECT_LE(before_quick, 5) << "its share is half of the time: four calls, and one that takes longer than the last";
    EXPECT_LE(slow.calls(), 10);
    for (const Row& row : rows) EXPECT_EQ(row.verdict, Verdict::ok) << row.reason;
  }
}

}  // namespace
}  // namespace tutti::harness::measure
