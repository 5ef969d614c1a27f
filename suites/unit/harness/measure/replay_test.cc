// SPDX-License-Identifier: Apache-2.0
// A replay passes only a system that works in every step, and its times have the gaps between calls.
#include "harness/measure/replay.h"

#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/unit/harness/measure/board_memory.h"
#include "suites/unit/harness/measure/lazy_backend.h"

namespace tutti::harness::measure {
namespace {

using testing::Each;
using testing::Ge;
using testing::HasSubstr;
using testing::SizeIs;

constexpr int kReplayRanks = 2;
constexpr int kReplays = 4;

/// Two steps of one call each on a lazy system: with buffers of their own, or the same for both. A round is two calls:
/// one that verifies each step, one to be warm, kReplays, and one more that verifies each step.
std::vector<ReplayedPart> parts_of(Works works, bool are_shared, std::vector<std::int64_t> gaps_ns = {}) {
  LazyBackend backend(std::move(works));
  Case one;
  one.collective = Collective::all_to_all;
  one.backend = backend.name();
  one.ranks = kReplayRanks;
  one.ranks_as = RanksAs::tasks;
  one.count = 100;
  one.bytes = buffer_bytes(one.problem(), one.count, size_of(one.dtype));
  const BoardMemory memory(kReplayRanks);
  Runner runner(memory.board(), {.runner = 0, .runners = 1, .job_ranks = kReplayRanks, .ranks = {0, 1}});
  std::vector<ReplaySystem> systems(1);
  systems.front().calls = {{.step = 0, .variant = 0}, {.step = 1, .variant = are_shared ? 0U : 1U}};
  for (int i = 0; i < (are_shared ? 1 : 2); ++i) {
    auto variant = Variant::create(
        runner,
        {.backend = backend, .memory = [](const Case&, std::size_t) { return plain_memory(); }, .instance = one});
    EXPECT_TRUE(variant.is_ok()) << variant.status().message();
    systems.front().variants.push_back(std::move(variant).value());
  }
  auto parts = replay(runner, systems, {.steps = 2, .gaps_ns = std::move(gaps_ns), .iterations = kReplays});
  EXPECT_TRUE(parts.is_ok()) << parts.status().message();
  EXPECT_EQ(backend.calls(), 2 * (kReplays + 3));
  return std::move(parts).value().front();
}

TEST(Replay, OfASystemThatWorksIsRightAndHasAsManyTimes) {
  for (const bool are_shared : {false, true}) {
    const std::vector<ReplayedPart> parts = parts_of([](int) { return true; }, are_shared);
    ASSERT_THAT(parts, SizeIs(3));
    for (const ReplayedPart& part : parts) {
      EXPECT_EQ(part.wrong, 0) << part.reason;
      EXPECT_THAT(part.times_us, SizeIs(kReplays));
    }
  }
}

TEST(Replay, CatchesASystemThatDoesNotWorkInAStepOfATimedReplay) {
  for (const int step : {0, 1}) {
    const int lazy = 2 * 3 + step;  // in the second one
    const std::vector<ReplayedPart> parts = parts_of([lazy](int number) { return number != lazy; }, false);
    EXPECT_EQ(parts[static_cast<std::size_t>(step)].wrong, 400);
    EXPECT_EQ(parts[static_cast<std::size_t>(1 - step)].wrong, 0);
    EXPECT_EQ(parts[2].wrong, 400);
    EXPECT_THAT(parts[2].reason, HasSubstr("nothing was written"));
    EXPECT_THAT(parts[2].reason, HasSubstr("all_to_all/"));
  }
}

TEST(Replay, VerifiesEachStepWhereStepsShareTheirBuffers) {
  const int last = 2 * (kReplays + 2);
  for (const int lazy : {0, last}) {
    const std::vector<ReplayedPart> parts = parts_of([lazy](int number) { return number != lazy; }, true);
    EXPECT_EQ(parts[0].wrong, 400) << lazy;
    EXPECT_EQ(parts[1].wrong, 0) << lazy;
  }
  const std::vector<ReplayedPart> parts = parts_of([](int number) { return number != 4 && number != 5; }, true);
  EXPECT_EQ(parts[1].wrong, 400) << "of a timed replay, in the last step that used them";
}

TEST(Replay, HasTheGapsBetweenCallsInItsTimes) {
  const std::vector<ReplayedPart> parts = parts_of([](int) { return true; }, true, {1000, 3000000});
  EXPECT_THAT(parts[2].times_us, Each(Ge(3000)));
}

}  // namespace
}  // namespace tutti::harness::measure
