// SPDX-License-Identifier: Apache-2.0
// Overlap by IMB's definition, of calls that are verified as all others.
#include "harness/measure/overlap.h"

#include <chrono>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/machine/clock.h"
#include "harness/measure/cell.h"
#include "suites/unit/harness/measure/board_memory.h"
#include "suites/unit/harness/measure/lazy_backend.h"

namespace tutti::harness::measure {
namespace {

TEST(Overlap, IsTheShareOfTheShorterOneThatCostNothing) {
  EXPECT_DOUBLE_EQ(overlap_percent(10, 10, 10), 100);
  EXPECT_DOUBLE_EQ(overlap_percent(10, 10, 20), 0);
  EXPECT_DOUBLE_EQ(overlap_percent(10, 10, 15), 50);
  EXPECT_DOUBLE_EQ(overlap_percent(10, 8, 14), 50) << "4 of 8";
  EXPECT_DOUBLE_EQ(overlap_percent(8, 10, 14), 50) << "of the shorter one, whichever it is";
  EXPECT_DOUBLE_EQ(overlap_percent(10, 10, 25), 0) << "never below";
  EXPECT_DOUBLE_EQ(overlap_percent(10, 10, 8), 100) << "never above";
}

TEST(Overlap, PartsOfAComputationAreAllOfIt) {
  const Computation work = Computation::lasting(50);
  EXPECT_GT(work.turns(), 100);
  EXPECT_EQ(Computation::lasting(0).turns(), 1);
}

Case overlapped_case(const Backend& backend) {
  Case one;
  one.collective = Collective::all_to_all;
  one.backend = backend.name();
  one.ranks_as = RanksAs::threads;
  set_bytes(one, 400);
  return one;
}

Variant variant_of(Runner& runner, LazyBackend& backend) {
  return Variant::create(runner, {.backend = backend,
                                  .memory = [](const Case&, std::size_t) { return plain_memory(); },
                                  .instance = overlapped_case(backend),
                                  .is_asynchronous = true})
      .value();
}

RunnerOptions alone() { return {.runner = 0, .runners = 1, .job_ranks = 1, .ranks = {0}}; }

TEST(Overlap, RoundsHaveFourTimesAndOneCallInTenRoundsIsVerified) {
  const BoardMemory memory(1);
  Runner runner(memory.board(), alone());
  LazyBackend backend([](int) { return true; });
  Variant variant = variant_of(runner, backend);
  const auto result = measure_overlap(runner, variant, {.calls = 3, .pure_us = 1, .salt = 5, .end_ns = 1});
  ASSERT_TRUE(result.is_ok()) << result.status().message();
  EXPECT_EQ(result.value().wrong, 0) << result.value().reason;
  for (const auto* times : {&result.value().pure_us, &result.value().computing_us, &result.value().overlapped_us,
                            &result.value().called_us}) {
    EXPECT_EQ(times->size(), 1U) << "there was no time for more";
  }
  EXPECT_EQ(backend.calls(), 3 + 1) << "of a round all but the computing alone, and the one that is verified";
  const auto full = measure_overlap(runner, variant,
                                    {.calls = 3, .pure_us = 1, .salt = 5, .end_ns = monotonic_ns() + 60'000'000'000});
  EXPECT_EQ(full.value().pure_us.size(), 200U) << "enough, however much time there is";
}

/// Says what is done with it; done when it is tested.
class TellingSystem final : public PlainBackend {
 public:
  explicit TellingSystem(std::vector<std::string>& story) : PlainBackend("telling"), story_(story) {}
  [[nodiscard]] Result<std::unique_ptr<Prepared>> prepare(const Case& /*one*/,
                                                          std::span<const RankBuffers> /*buffers*/) override {
    return std::unique_ptr<Prepared>(new Call(story_));
  }

 private:
  class Call final : public Prepared {
   public:
    explicit Call(std::vector<std::string>& story) : story_(story) {}
    Status post(std::size_t /*index*/) override {
      story_.emplace_back("post");
      tests_ = 0;
      return {};
    }
    Result<bool> test(std::size_t /*index*/) override {
      story_.emplace_back("test");
      return ++tests_ > 2;
    }

   private:
    std::vector<std::string>& story_;
    int tests_ = 0;
  };
  std::vector<std::string>& story_;
};

TEST(Overlap, ComputesWhileItIsPostedWithAndWithoutCallsBetween) {
  const BoardMemory memory(1);
  Runner runner(memory.board(), alone());
  std::vector<std::string> story;
  TellingSystem system(story);
  Case one = overlapped_case(system);
  Variant variant = Variant::create(runner, {.backend = system,
                                             .memory = [](const Case&, std::size_t) { return plain_memory(); },
                                             .instance = one,
                                             .is_asynchronous = true})
                        .value();
  const Compute compute = [&](int index, int parts) { story.push_back(fmt::format("{}/{}", index, parts)); };
  const auto result = measure_overlap(
      runner, variant, {.calls = 2, .compute = compute, .end_ns = 1, .conditions = {.checking = Checking::none}});
  ASSERT_TRUE(result.is_ok()) << result.status().message();
  EXPECT_THAT(story, testing::ElementsAre("post", "test", "test", "test",                         // pure
                                          "0/1",                                                  // computing
                                          "post", "0/1", "test", "test", "test",                  // overlapped
                                          "post", "0/3", "test", "1/3", "test", "2/3", "test"));  // with calls
}

TEST(Overlap, EachTimeIsThatOfItsKind) {
  const BoardMemory memory(1);
  Runner runner(memory.board(), alone());
  LazyBackend backend([](int) { return true; });
  Variant variant = variant_of(runner, backend);
  int alone_or_overlapped = 0;
  const Compute compute = [&](int /*index*/, int parts) {
    const int longer = parts > 1 ? 1 : ++alone_or_overlapped == 1 ? 4 : 16;
    std::this_thread::sleep_for(longer * std::chrono::milliseconds(2));
  };
  const auto result = measure_overlap(
      runner, variant, {.calls = 3, .compute = compute, .end_ns = 1, .conditions = {.checking = Checking::none}});
  ASSERT_TRUE(result.is_ok()) << result.status().message();
  EXPECT_GE(result.value().computing_us.at(0), 8e3);
  EXPECT_GE(result.value().overlapped_us.at(0), 32e3);
  EXPECT_GE(result.value().called_us.at(0), 8e3) << "four parts";
}

TEST(Overlap, RoundsToWhichARankCameLateDoNotCount) {
  constexpr auto kHeldUp = std::chrono::milliseconds(40);
  for (const auto sync : {Synchronisation::roundtime, Synchronisation::dissemination}) {
    const BoardMemory memory(2);
    on_runners(
        memory.board(), 2,
        [&](Runner& runner) {
          LazyBackend backend([](int) { return true; });
          Case one = overlapped_case(backend);
          one.ranks = 2;
          one.collective = Collective::barrier;
          Variant variant = Variant::create(runner, {.backend = backend,
                                                     .memory = [](const Case&, std::size_t) { return plain_memory(); },
                                                     .instance = one,
                                                     .is_asynchronous = true})
                                .value();
          const auto result = measure_overlap(runner, variant,
                                              {.calls = 3,
                                               .pure_us = 1,
                                               .end_ns = 1,
                                               .conditions = {.checking = Checking::none},
                                               .start = {.how = sync}});
          ASSERT_TRUE(result.is_ok()) << result.status().message();
          EXPECT_EQ(result.value().pure_us.size(), sync == Synchronisation::roundtime ? 0U : 1U);
        },
        [&, starts = 0](int runner) mutable {
          if (runner == 1 && ++starts == 3) std::this_thread::sleep_for(kHeldUp);
        });
  }
}

TEST(Overlap, AWrongResultOfAnOverlappedCallIsTheRowsVerdict) {
  const BoardMemory memory(1);
  Runner runner(memory.board(), alone());
  constexpr int kCallsBefore = 2;  // a cell without time: one that is discarded and one that is verified
  LazyBackend backend([](int number) { return number < kCallsBefore; });
  std::vector<Variant> variants;
  variants.push_back(variant_of(runner, backend));
  const auto rows =
      measure_cell(runner, variants, {.most_time = std::chrono::nanoseconds(0), .conditions = {.overlap_calls = 4}});
  ASSERT_TRUE(rows.is_ok()) << rows.status().message();
  const Row& row = rows.value().front();
  EXPECT_EQ(row.verdict, Verdict::wrong);
  EXPECT_GT(row.wrong, 0);
  EXPECT_THAT(row.reason, testing::StartsWith("overlapped: "));
}

TEST(Overlap, CatchesASystemThatDoesNotWorkInTheCallThatIsVerified) {
  const BoardMemory memory(1);
  Runner runner(memory.board(), alone());
  LazyBackend backend([](int number) { return number < 3; });
  Variant variant = variant_of(runner, backend);
  const OverlapOptions options{.calls = 3, .pure_us = 1, .salt = 5, .end_ns = 1};
  EXPECT_GT(measure_overlap(runner, variant, options).value().wrong, 0);
  OverlapOptions unchecked = options;
  unchecked.conditions.checking = Checking::none;
  EXPECT_EQ(measure_overlap(runner, variant, unchecked).value().wrong, 0);
}

TEST(Overlap, CatchesASystemThatDoesNotWorkInTheLastCallThatIsTimed) {
  const BoardMemory memory(1);
  Runner runner(memory.board(), alone());
  LazyBackend backend([](int number) { return number != 2; });
  Variant variant = variant_of(runner, backend);
  const OverlapOptions options{.calls = 3, .pure_us = 1, .salt = 5, .end_ns = 1};
  EXPECT_GT(measure_overlap(runner, variant, options).value().wrong, 0);
}

TEST(Overlap, IsPartOfTheRowWhereItIsAskedFor) {
  const BoardMemory memory(1);
  Runner runner(memory.board(), alone());
  for (const int calls : {0, 4}) {
    LazyBackend backend([](int) { return true; });
    std::vector<Variant> variants;
    variants.push_back(variant_of(runner, backend));
    const auto rows = measure_cell(
        runner, variants, {.most_time = std::chrono::milliseconds(40), .conditions = {.overlap_calls = calls}});
    ASSERT_TRUE(rows.is_ok()) << rows.status().message();
    const Row& row = rows.value().front();
    EXPECT_EQ(row.verdict, Verdict::ok) << row.reason;
    EXPECT_EQ(row.conditions.contains("overlap_calls") ? row.conditions.at("overlap_calls") : "0",
              std::to_string(calls));
    EXPECT_EQ(row.overlap.has_value(), calls > 0);
    if (calls == 0) continue;
    EXPECT_DOUBLE_EQ(*row.overlap, overlap_percent(*row.time_pure, *row.time_computing, *row.time_overlapped));
    EXPECT_DOUBLE_EQ(*row.overlap_called,
                     overlap_percent(*row.time_pure, *row.time_computing, *row.time_overlapped_called));
  }
}

}  // namespace
}  // namespace tutti::harness::measure
