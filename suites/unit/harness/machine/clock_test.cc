// SPDX-License-Identifier: Apache-2.0
#include "harness/machine/clock.h"

#include <vector>

#include <gtest/gtest.h>

namespace tutti::harness::machine {
namespace {

TEST(Clock, TicksOfTenNanosecondsThatRoundingBlurs) {
  std::vector<std::int64_t> differences;
  differences.insert(differences.end(), 300, 20);
  differences.insert(differences.end(), 100, 29);
  differences.insert(differences.end(), 500, 30);
  differences.insert(differences.end(), 100, 31);
  differences.insert(differences.end(), 90, 40);
  differences.push_back(35);  // once in a thousand: no group of its own
  const ClockFacts facts = clock_facts_of(differences);
  EXPECT_DOUBLE_EQ(facts.tick_ns, 10);
  EXPECT_EQ(facts.read_ns, 30);
}

TEST(Clock, AClockThatShowsEveryNanosecondHasTicksOfOne) {
  std::vector<std::int64_t> differences;
  for (std::int64_t i = 0; i < 100; ++i) differences.push_back(20 + i % 9);
  EXPECT_EQ(clock_facts_of(differences).tick_ns, 1);
  EXPECT_EQ(clock_facts_of(std::vector<std::int64_t>{25}).tick_ns, 1);
}

TEST(Clock, ThisMachineHasOne) {
  const ClockFacts facts = measure_clock();
  EXPECT_GE(facts.tick_ns, 1);
  EXPECT_GE(facts.read_ns, 0);
}

}  // namespace
}  // namespace tutti::harness::machine
