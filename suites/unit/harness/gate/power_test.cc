// SPDX-License-Identifier: Apache-2.0
// The step that a cell is said to show is found in 9 of 10 gates, by the judge that gates have.
#include "harness/gate/power.h"

#include <cmath>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::gate {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kBytes = 4096;
constexpr double kOtherUs = 1000;

Evidence evidence_of(double step, double scatter, int pairs, std::mt19937_64& random) {
  std::normal_distribution<double> noise(std::log1p(step), scatter);
  Evidence evidence{.cell = "all_reduce/4096B", .bytes = kBytes};
  for (int i = 0; i < pairs; ++i) {
    evidence.log_ratios.push_back(noise(random));
    evidence.confirmation.push_back(noise(random));
    evidence.other_us.push_back(kOtherUs);
    evidence.this_us.push_back(kOtherUs * (1 + step));
  }
  return evidence;
}

/// Of how many gates of a hundred the step is found.
int found(double step, double scatter, int pairs) {
  std::mt19937_64 random(7);
  int hits = 0;
  constexpr int kGates = 400;
  for (int i = 0; i < kGates; ++i) {
    hits += judge_finally(evidence_of(step, scatter, pairs, random)).opinion == Opinion::slower ? 1 : 0;
  }
  return 100 * hits / kGates;
}

TEST(Power, TheStepThatACellShowsIsFoundInNineOfTenGates) {
  const double floor = gate_floor(kBytes, kOtherUs);
  for (const double scatter : {0.01, 0.05}) {
    for (const int pairs : {16, 64}) {
      const double step = smallest_step(floor, scatter, pairs);
      SCOPED_TRACE(testing::Message() << "scatter " << scatter << ", pairs " << pairs << ", step " << step);
      const int hits = found(step, scatter, pairs);
      EXPECT_GE(hits, 80);
      EXPECT_LE(hits, 97);
      EXPECT_LE(found(floor, scatter, pairs), 2);
    }
  }
}

TEST(Power, IsOfTheScatterOfAFewBlocks) {
  std::mt19937_64 random(3);
  const CellPower cell = power_of(evidence_of(0, 0.02, 400, random), 200, 8, 32);
  EXPECT_NEAR(cell.scatter, 0.02, 0.003);
  EXPECT_DOUBLE_EQ(cell.floor, gate_floor(kBytes, kOtherUs));
  ASSERT_TRUE(cell.least && cell.most);
  EXPECT_NEAR(*cell.least, smallest_step(cell.floor, cell.scatter, 16), 1e-12);
  EXPECT_NEAR(*cell.most, smallest_step(cell.floor, cell.scatter, 64), 1e-12);
  EXPECT_LT(*cell.most, *cell.least);
}

TEST(Power, ACellWithoutPairsHasItsReason) {
  const CellPower cell = power_of(Evidence{.cell = "barrier", .missing = "the other build has no such cell"}, 2, 8, 32);
  EXPECT_FALSE(cell.time_us || cell.least);
  const std::vector<CellPower> cells{cell};
  EXPECT_THAT(power_table(cells, 8, 32), HasSubstr("#   the other build has no such cell"));
}

}  // namespace
}  // namespace tutti::harness::gate
