// SPDX-License-Identifier: Apache-2.0
// A block passes only a system that works in the operations that are timed, not one that works in those before them.
#include "harness/measure/block.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/machine/clock.h"
#include "suites/unit/harness/measure/board_memory.h"
#include "suites/unit/harness/measure/lazy_backend.h"

namespace tutti::harness::measure {
namespace {

using testing::HasSubstr;

constexpr int kRanks = 2;
constexpr int kSamples = 5;
constexpr int kDiscarded = 2;

/// One runner with all ranks, and a lazy system's all_to_all on it.
class Block : public testing::TestWithParam<bool> {
 protected:
  BlockResult run(Works works, BlockOptions options, std::function<void()> on_call = {}) {
    LazyBackend backend(std::move(works));
    backend.set_on_call(std::move(on_call));
    backend_ = &backend;
    Case one;
    one.collective = Collective::all_to_all;
    one.backend = backend.name();
    one.ranks = kRanks;
    one.ranks_as = RanksAs::tasks;
    one.count = 100;
    one.bytes = buffer_bytes(one.problem(), one.count, size_of(one.dtype));
    one.is_in_place = GetParam();
    one.cadence = cadence_;
    one.buffers = buffers_;
    const BoardMemory memory(kRanks);
    Runner runner(memory.board(), {.runner = 0, .runners = 1, .job_ranks = kRanks, .ranks = {0, 1}});
    auto variant = Variant::create(
        runner,
        {.backend = backend, .memory = [](const Case&, std::size_t) { return plain_memory(); }, .instance = one});
    EXPECT_TRUE(variant.is_ok()) << variant.status().message();
    auto result = run_block(runner, variant.value(), options);
    EXPECT_TRUE(result.is_ok()) << result.status().message();
    calls_ = backend.calls();
    return std::move(result).value();
  }
  BlockResult run(Works works) { return run(std::move(works), {.salt = 7, .samples = kSamples}); }
  /// A system that does nothing where rank 0 has the input that it had in the call before.
  Works works_on_new_data() {
    return [this](int /*number*/) {
      const auto* input = static_cast<const std::byte*>(backend_->buffers().front().input);
      const std::vector<std::byte> now(input, input + 64);
      return std::exchange(before_, now) != now;
    };
  }
  LazyBackend* backend_ = nullptr;  ///< while it runs
  std::vector<std::byte> before_;
  int calls_ = 0;
  Cadence cadence_ = Cadence::isolated;
  Buffers buffers_ = Buffers::private_;
};

constexpr int kOperations = 4;

/// The same with loops of kOperations.
class StreamingBlock : public Block {
 protected:
  StreamingBlock() { cadence_ = Cadence::streaming; }
  BlockResult stream(Works works) {
    return run(std::move(works), {.salt = 7, .samples = kSamples, .operations = kOperations});
  }
  [[nodiscard]] static bool is_in_place() { return GetParam(); }
};

TEST_P(Block, PassesASystemThatWorksInEveryCall) {
  const BlockResult result = run([](int) { return true; });
  EXPECT_EQ(result.wrong, 0) << result.reason;
  EXPECT_EQ(result.samples.size(), static_cast<std::size_t>(kSamples));
}

TEST_P(Block, HasOneMoreCallAfterTheSamplesWhichIsVerified) {
  static_cast<void>(run([](int) { return true; }));
  EXPECT_EQ(calls_, kDiscarded + kSamples + 1);
}

TEST_P(Block, CatchesASystemThatWorksInTheDiscardedCallsOnly) {
  const BlockResult result = run([](int number) { return number < kDiscarded; });
  // In the last sample and in the last call; in place one's own block is right by itself.
  EXPECT_EQ(result.wrong, 2 * (GetParam() ? 200 : 400)) << result.reason;
  EXPECT_THAT(result.reason, HasSubstr(GetParam() ? "rank 0: output: " : "nothing was written"));
}

TEST_P(Block, VerifiesEverySampleOnDataOfItsOwnWhereThatIsChosen) {
  const auto works_but_in = [](int lazy) { return [=](int number) { return number != lazy; }; };
  for (const int lazy : {kDiscarded, kDiscarded + kSamples / 2, kDiscarded + kSamples - 1}) {
    const bool is_last = lazy == kDiscarded + kSamples - 1;
    EXPECT_EQ(run(works_but_in(lazy), {.salt = 7, .samples = kSamples}).wrong > 0, is_last) << lazy;
    const BlockResult result =
        run(works_but_in(lazy), {.salt = 7, .samples = kSamples, .conditions = {.checking = Checking::every}});
    EXPECT_GT(result.wrong, 0) << lazy;
    EXPECT_EQ(result.last_salt, 7U + kSamples + 1);
  }
}

TEST_P(Block, VerifiesTheLastSampleAndTheChosenOneAndDiscardsCallsAgain) {
  for (const int chosen : {0, kSamples / 2, kSamples - 1}) {
    for (int lazy = 0; lazy < kSamples; ++lazy) {
      const int more = lazy > chosen ? kDiscarded : 0;
      const auto works = [=](int number) { return number != kDiscarded + lazy + more; };
      const BlockResult result = run(works, {.salt = 7, .samples = kSamples, .chosen = chosen});
      EXPECT_EQ(result.wrong > 0, lazy == chosen || lazy == kSamples - 1) << lazy << " of which " << chosen;
      EXPECT_EQ(result.samples.size(), static_cast<std::size_t>(kSamples)) << "those that are verified count";
      EXPECT_EQ(calls_, kDiscarded + kSamples + (chosen == kSamples - 1 ? 0 : kDiscarded) + 1);
    }
  }
}

TEST_P(Block, CatchesASystemThatDoesNothingWhereItsInputIsWhatItWas) {
  const BlockResult result = run(works_on_new_data());
  EXPECT_EQ(result.wrong, GetParam() ? 200 : 400) << "in the last sample: the last call has other data";
}

TEST_P(Block, OnSharedBuffersMakesACallMoreToVerifyOutOfPlaceAndPoisonsNothingBefore) {
  buffers_ = Buffers::shared;
  EXPECT_EQ(run([](int) { return true; }).wrong, 0);
  EXPECT_EQ(calls_, kDiscarded + kSamples + (GetParam() ? 0 : 1) + 1);
  EXPECT_GT(run(works_on_new_data()).wrong, 0);
  const auto works_but_in_samples = [](int number) { return number < kDiscarded || number >= kDiscarded + kSamples; };
  EXPECT_EQ(run(works_but_in_samples).wrong > 0, GetParam()) << "what is left of the discarded calls is right";
}

TEST_P(Block, InPlaceEveryCallStartsFromFreshData) {
  std::vector<std::byte> first;
  LazyBackend backend([](int) { return true; });
  Case one;
  one.collective = Collective::all_to_all;
  one.backend = backend.name();
  one.ranks = kRanks;
  one.ranks_as = RanksAs::tasks;
  one.is_in_place = GetParam();
  set_bytes(one, 800);
  const BoardMemory memory(kRanks);
  Runner runner(memory.board(), {.runner = 0, .runners = 1, .job_ranks = kRanks, .ranks = {0, 1}});
  auto variant = Variant::create(
      runner, {.backend = backend, .memory = [](const Case&, std::size_t) { return plain_memory(); }, .instance = one});
  ASSERT_TRUE(variant.is_ok()) << variant.status().message();
  backend.set_on_call([&] {
    const std::span now(static_cast<const std::byte*>(backend.buffers().front().input), 800);
    if (first.empty()) first.assign(now.begin(), now.end());
    EXPECT_TRUE(std::ranges::equal(now, first)) << "before call " << backend.calls();
  });
  const auto result =
      run_block(runner, variant.value(), {.salt = 7, .samples = kSamples, .conditions = {.checking = Checking::none}});
  ASSERT_TRUE(result.is_ok()) << result.status().message();
  EXPECT_EQ(backend.calls(), kDiscarded + kSamples);
}

TEST_P(Block, HasNoLastCallWhereNothingIsVerified) {
  const BlockResult result =
      run([](int) { return false; }, {.salt = 7, .samples = kSamples, .conditions = {.checking = Checking::none}});
  EXPECT_EQ(calls_, kDiscarded + kSamples);
  EXPECT_EQ(result.wrong, 0);
  EXPECT_EQ(result.samples.size(), static_cast<std::size_t>(kSamples));
  EXPECT_EQ(run([](int) { return true; }, {.salt = 7, .conditions = {.checking = Checking::none}, .end_ns = 1})
                .samples.size(),
            1U);
}

TEST_P(Block, LetsAnotherRankComeLateInEachCallAndTimesFromItsArrival) {
  constexpr std::chrono::microseconds kSkew{300};
  const BlockResult result =
      run([](int) { return true; }, {.salt = 7, .samples = kSamples, .conditions = {.skew = kSkew}});
  EXPECT_EQ(result.wrong, 0) << result.reason;
  const auto is_late = [&](const Sample& sample) { return sample.skew_us > 0.9 * static_cast<double>(kSkew.count()); };
  EXPECT_GE(std::ranges::count_if(result.samples, is_late), kSamples / 2) << "the others may have been held up too";
  for (std::size_t i = 0; i < result.samples.size(); ++i) {
    const Sample& sample = result.samples[i];
    EXPECT_EQ(sample.arrived_last, (kDiscarded + static_cast<int>(i)) % kRanks);
    EXPECT_EQ(time_of(sample, kSkew), sample.last_arrival_us);
    EXPECT_EQ(time_of(sample, {}), sample.global_us);
  }
}

TEST_P(Block, CatchesASystemThatWorksInTheFirstSampleOnly) {
  const BlockResult result = run([](int number) { return number == kDiscarded; });
  EXPECT_GT(result.wrong, 0);
}

TEST_P(Block, CatchesASystemThatGivesTheResultOfTheCallBefore) {
  // The last call copies nothing; what it finds in the output is right but for the data of this refill.
  const BlockResult result = run([](int number) { return number < kDiscarded + kSamples; });
  EXPECT_GT(result.wrong, 0);
}

TEST_P(Block, HasOneSampleWhereTheTimeIsOverWhichIsTheVerifiedCall) {
  const BlockResult fine = run([](int) { return true; }, {.salt = 7, .end_ns = 1});
  EXPECT_EQ(calls_, 2);
  EXPECT_EQ(fine.samples.size(), 1U);
  EXPECT_EQ(fine.wrong, 0) << fine.reason;
  EXPECT_GT(run([](int number) { return number == 0; }, {.salt = 7, .end_ns = 1}).wrong, 0);
}

TEST_P(Block, LooksAtTheClockAfterEveryCall) {
  constexpr auto kEach = std::chrono::milliseconds(2);
  const std::int64_t end_ns = monotonic_ns() + 4 * std::chrono::nanoseconds(kEach).count();
  const auto sleep = [&] { std::this_thread::sleep_for(kEach); };
  const BlockResult result = run([](int) { return true; }, {.salt = 7, .end_ns = end_ns}, sleep);
  EXPECT_LE(calls_, 3) << "after two calls there is no time for two more";
  EXPECT_EQ(result.samples.size(), 1U);
}

TEST_P(StreamingBlock, HasLoopsOfOperationsAndInPlaceOneFurtherOperation) {
  const BlockResult result = stream([](int) { return true; });
  EXPECT_EQ(result.wrong, 0) << result.reason;
  EXPECT_EQ(result.samples.size(), static_cast<std::size_t>(kSamples));
  EXPECT_EQ(calls_, (kDiscarded + kSamples) * kOperations + (is_in_place() ? 1 : kOperations));
}

TEST_P(StreamingBlock, VerifiesEveryLoopOrInPlaceOneFurtherOperationEach) {
  const int in_a_sample = kOperations + (is_in_place() ? 1 : 0);
  const int second = kDiscarded * kOperations + in_a_sample;
  const BlockResult result =
      run([=](int number) { return number < second || number >= second + in_a_sample; },
          {.salt = 7, .samples = kSamples, .operations = kOperations, .conditions = {.checking = Checking::every}});
  EXPECT_GT(result.wrong, 0);
  EXPECT_EQ(calls_, kDiscarded * kOperations + kSamples * in_a_sample + (is_in_place() ? 1 : kOperations));
}

TEST_P(StreamingBlock, CatchesASystemThatWorksBeforeTheLastCallOnly) {
  EXPECT_GT(stream([](int number) { return number < (kDiscarded + kSamples) * kOperations; }).wrong, 0);
}

// A loop in place is not verified itself.
TEST_P(StreamingBlock, CatchesASystemThatDoesNothingInTheLastLoopOutOfPlace) {
  const int last = (kDiscarded + kSamples - 1) * kOperations;
  const auto wrong = stream([=](int number) { return number < last || number >= last + kOperations; }).wrong;
  EXPECT_EQ(wrong > 0, !is_in_place());
  EXPECT_EQ(stream(works_on_new_data()).wrong > 0, !is_in_place());
}

TEST_P(StreamingBlock, HasASampleThatIsALoopAlsoWhereTheTimeIsOver) {
  const BlockResult result =
      run([](int) { return true; }, {.salt = 7, .samples = kSamples, .operations = kOperations, .end_ns = 1});
  EXPECT_EQ(result.samples.size(), 1U);
  // In place the further operation is no loop, so a loop must have been a sample before it.
  EXPECT_EQ(calls_, is_in_place() ? (kDiscarded + 1) * kOperations + 1 : 2 * kOperations);
}

INSTANTIATE_TEST_SUITE_P(Placements, StreamingBlock, testing::Bool(),
                         [](const auto& instance) { return instance.param ? "in_place" : "out_of_place"; });

INSTANTIATE_TEST_SUITE_P(Placements, Block, testing::Bool(),
                         [](const auto& instance) { return instance.param ? "in_place" : "out_of_place"; });

}  // namespace
}  // namespace tutti::harness::measure
