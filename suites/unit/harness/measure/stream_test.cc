// SPDX-License-Identifier: Apache-2.0
// The loop of nccl-tests passes only a system that works in the loop.
#include "harness/measure/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/unit/harness/measure/board_memory.h"
#include "suites/unit/harness/measure/lazy_backend.h"

namespace tutti::harness::measure {
namespace {

constexpr int kStreamRanks = 2;
constexpr int kStreamOperations = 5;

class Stream : public testing::TestWithParam<bool> {
 protected:
  /// A lazy system's all_to_all on one host with all ranks.
  StreamResult run(Works works, StreamOptions options) {
    LazyBackend backend(std::move(works));
    Case one;
    one.collective = Collective::all_to_all;
    one.backend = backend.name();
    one.ranks = kStreamRanks;
    one.ranks_as = RanksAs::tasks;
    one.count = 100;
    one.bytes = buffer_bytes(one.problem(), one.count, size_of(one.dtype));
    one.is_in_place = is_in_place();
    one.cadence = Cadence::streaming;
    const BoardMemory memory(kStreamRanks);
    Runner runner(memory.board(), {.runner = 0, .runners = 1, .job_ranks = kStreamRanks, .ranks = {0, 1}});
    auto variant = Variant::create(
        runner,
        {.backend = backend, .memory = [](const Case&, std::size_t) { return plain_memory(); }, .instance = one});
    EXPECT_TRUE(variant.is_ok()) << variant.status().message();
    auto result = measure_stream(runner, variant.value(), options);
    EXPECT_TRUE(result.is_ok()) << result.status().message();
    calls_ = backend.calls();
    return std::move(result).value();
  }
  [[nodiscard]] static bool is_in_place() { return GetParam(); }
  int calls_ = 0;
};

TEST_P(Stream, HasOneUntimedOperationTheLoopAndInPlaceAFurtherOne) {
  const StreamResult result = run([](int) { return true; }, {.operations = kStreamOperations, .salt = 3});
  EXPECT_EQ(result.wrong, 0) << result.reason;
  EXPECT_EQ(result.failed_checks, 0);
  EXPECT_EQ(calls_, 1 + kStreamOperations + (is_in_place() ? 1 : 0));
  EXPECT_TRUE(result.each_us.empty());
}

TEST_P(Stream, CatchesASystemThatWorksInTheUntimedOperationOnly) {
  const StreamResult result = run([](int number) { return number == 0; }, {.operations = kStreamOperations, .salt = 3});
  EXPECT_GT(result.wrong, 0);
  EXPECT_EQ(result.failed_checks, 1);
}

TEST_P(Stream, ChecksOneFurtherOperationPerRoundUntilOneIsBad) {
  const int good = 1 + kStreamOperations + (is_in_place() ? 1 : 0);
  const StreamResult fine = run([](int) { return true; }, {.operations = kStreamOperations, .checks = 4, .salt = 3});
  EXPECT_EQ(fine.wrong, 0) << fine.reason;
  EXPECT_EQ(calls_, good + 3);
  const StreamResult bad =
      run([&](int number) { return number < good + 1; }, {.operations = kStreamOperations, .checks = 4, .salt = 3});
  EXPECT_GT(bad.wrong, 0);
  EXPECT_EQ(calls_, good + 2);
}

TEST_P(Stream, ChecksNothingWhereNobodyAsks) {
  const StreamResult result = run([](int) { return false; }, {.operations = kStreamOperations, .checks = 0});
  EXPECT_EQ(result.wrong, 0);
  EXPECT_EQ(calls_, 1 + kStreamOperations);
}

TEST_P(Stream, KeepsTheTimeOfEveryOperationAndOrdersTheRanksMeans) {
  for (const Blocking blocking : {Blocking::none, Blocking::barrier_timed, Blocking::barrier_untimed}) {
    const StreamResult result =
        run([](int) { return true; }, {.operations = kStreamOperations, .blocking = blocking, .times_each = true});
    EXPECT_EQ(result.each_us.size(), static_cast<std::size_t>(kStreamOperations));
    EXPECT_LE(result.least_us, result.mean_us);
    EXPECT_LE(result.mean_us, result.most_us);
    EXPECT_GE(result.rank0_us, result.least_us);
  }
}

INSTANTIATE_TEST_SUITE_P(Placements, Stream, testing::Bool(),
                         [](const auto& instance) { return instance.param ? "in_place" : "out_of_place"; });

}  // namespace
}  // namespace tutti::harness::measure
