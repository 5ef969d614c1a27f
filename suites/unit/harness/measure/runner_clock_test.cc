// SPDX-License-Identifier: Apache-2.0
// Hosts whose clocks differ: what they tell each other is on the common clock.
#include "harness/measure/runner_clock.h"

#include <atomic>
#include <cstdlib>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/measure/block.h"
#include "harness/measure/check.h"
#include "harness/measure/runner.h"
#include "suites/unit/harness/measure/barrier_backend.h"
#include "suites/unit/harness/measure/board_memory.h"

namespace tutti::harness::measure {
namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::int64_t kFarNs = kSecondNs / 2;  // no wait of these tests takes as long

/// Two runners, the second of which has a clock that is a second off; it knows that, or does not.
void on_two_clocks(bool knows, const std::function<void(Runner&)>& body) {
  const BoardMemory memory(2);
  std::vector<std::thread> threads;
  for (int index = 0; index < 2; ++index) {
    threads.emplace_back([&, index] {
      RunnerOptions options = runner_options(index, 2);
      if (index == 1) options.clock = {.lead_ns = kSecondNs, .offset_ns = knows ? kSecondNs : 0};
      Runner runner(memory.board(), std::move(options));
      body(runner);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(RunnerClock, IsTheCommonOneWhereNothingElseIsSaid) {
  const RunnerClock clock;
  const std::int64_t before = monotonic_ns();
  const std::int64_t now = clock.now();
  EXPECT_GE(now, before);
  EXPECT_LE(now, monotonic_ns());
  EXPECT_EQ(clock.common(now), now);
  EXPECT_EQ(clock.here(now), now);
}

TEST(RunnerClock, ConvertsThereAndBackWithOffsetAndDrift) {
  const RunnerClock clock{.offset_ns = -5000, .drift = 1e-4, .since_ns = 1000 * kSecondNs};
  EXPECT_EQ(clock.common(1000 * kSecondNs), 1000 * kSecondNs + 5000);
  EXPECT_EQ(clock.common(1001 * kSecondNs), 1001 * kSecondNs + 5000 - 100'000);
  for (std::int64_t reading = 990 * kSecondNs; reading < 1010 * kSecondNs; reading += 999'999'937) {
    EXPECT_LE(std::abs(clock.here(clock.common(reading)) - reading), 1);
  }
}

TEST(RunnerClock, BetweenTwoEstimatesTheOffsetMovesEvenly) {
  const ClockEstimate before{.offset_ns = 7000, .since_ns = 10 * kSecondNs};
  const ClockEstimate after{.offset_ns = 9000, .since_ns = 12 * kSecondNs};
  const RunnerClock clock = between(before, after, {.offset_ns = 1, .drift = 1, .since_ns = 1, .doubt_ns = 50});
  EXPECT_EQ(clock.common(10 * kSecondNs), 10 * kSecondNs - 7000);
  EXPECT_EQ(clock.common(11 * kSecondNs), 11 * kSecondNs - 8000);
  EXPECT_EQ(clock.common(12 * kSecondNs), 12 * kSecondNs - 9000);
  EXPECT_EQ(clock.doubt_ns, 50);
  EXPECT_EQ(between(before, before, {}).common(11 * kSecondNs), 11 * kSecondNs - 7000);
}

TEST(RunnerClock, AnAnnouncedInstantIsReachedByEachOnItsOwnClock) {
  for (const bool knows : {true, false}) {
    std::atomic<int> early = 0;
    on_two_clocks(knows, [&](Runner& runner) {
      for (int round = 0; round < 20; ++round) {
        const auto instant = runner.start_together();
        const std::int64_t here = monotonic_ns();  // that of runner 0
        ASSERT_TRUE(instant.is_ok()) << instant.status().message();
        ASSERT_EQ(runner.agree(instant.value()).value(), instant.value());
        if (here < instant.value()) ++early;
        if (knows) {
          EXPECT_LT(here - instant.value(), kFarNs);
        }
      }
    });
    if (knows) {
      EXPECT_EQ(early, 0);
    }
  }
}

TEST(RunnerClock, SamplesAreOfOneClock) {
  for (const bool knows : {true, false}) {
    BarrierBackend backend;
    on_two_clocks(knows, [&](Runner& runner) {
      Variant variant = made_on(runner, backend);
      const auto block = run_block(runner, variant, {.salt = 1, .samples = 5});
      ASSERT_TRUE(block.is_ok()) << block.status().message();
      for (const Sample& sample : block.value().samples) {
        EXPECT_EQ(sample.global_us * 1e3 < kFarNs, knows);
        EXPECT_EQ(sample.skew_us * 1e3 < kFarNs, knows);
        EXPECT_EQ(sample.late_us.value_or(0) * 1e3 < kFarNs, knows);
      }
      EXPECT_EQ(block.value().wrong == 0, knows) << block.value().reason;
    });
  }
}

TEST(RunnerClock, ABarrierIsJudgedOnOneClock) {
  for (const bool knows : {true, false}) {
    BarrierBackend backend;
    std::mutex mutex;
    std::string text;
    on_two_clocks(knows, [&](Runner& runner) {
      Variant variant = made_on(runner, backend);
      const auto damage = check_barrier_rule(runner, variant);
      ASSERT_TRUE(damage.is_ok()) << damage.status().message();
      const std::lock_guard lock(mutex);
      text += damage.value().text;
    });
    EXPECT_EQ(text.empty(), knows) << text;
  }
}

}  // namespace
}  // namespace tutti::harness::measure
