// SPDX-License-Identifier: Apache-2.0
#include "harness/statistics/two_samples.h"

#include <array>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace tutti::harness::statistics {
namespace {

/// Of all choices of `first` places among `first + second`, the share whose U is at most `most`.
double counted_one_by_one(unsigned first, unsigned second, std::int64_t most) {
  std::int64_t all = 0, within = 0;
  for (unsigned chosen = 0; chosen < 1U << (first + second); ++chosen) {
    if (static_cast<unsigned>(__builtin_popcount(chosen)) != first) continue;
    std::int64_t u = 0, below = 0;
    for (unsigned place = 0; place < first + second; ++place) {
      (chosen >> place & 1U) != 0 ? u += below : ++below;
    }
    ++all;
    within += u <= most ? 1 : 0;
  }
  return static_cast<double>(within) / static_cast<double>(all);
}

TEST(MannWhitney, EqualsTheCountOfAllOrders) {
  for (const auto& [first, second] : {std::pair{1U, 1U}, {2U, 5U}, {5U, 2U}, {4U, 4U}, {6U, 7U}}) {
    for (std::int64_t u = -1; u <= first * second; ++u) {
      EXPECT_NEAR(mann_whitney_probability(first, second, u), counted_one_by_one(first, second, u), 1e-12)
          << first << " " << second << " " << u;
    }
  }
}

// The largest U that is significant at 0.05 on two sides, from the table of Mann and Whitney as textbooks print it
// (Siegel, table K): U itself is significant, the next one is not.
TEST(MannWhitney, CriticalValuesOfThePublishedTable) {
  const std::vector<std::array<int, 3>> table{{4, 4, 0}, {5, 5, 2}, {6, 6, 5}, {8, 8, 13}, {10, 10, 23}, {20, 20, 127}};
  for (const auto& [first, second, critical] : table) {
    EXPECT_LE(mann_whitney_probability(first, second, critical), 0.025) << first;
    EXPECT_GT(mann_whitney_probability(first, second, critical + 1), 0.025) << first;
  }
}

TEST(MannWhitney, TheNormalApproximationGoesOnWhereCountingEnds) {
  EXPECT_NEAR(mann_whitney_probability(50, 50, 1000), mann_whitney_probability(50, 51, 1020), 3e-3);
  EXPECT_NEAR(mann_whitney_probability(60, 60, 1800), 0.5, 3e-3);
}

// Hollander & Wolfe, example 4.1: permeability of membranes, ten at term and five earlier. Their estimate is 0.305.
TEST(ShiftBetween, OfAPublishedExample) {
  const std::vector<double> at_term{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46};
  const std::vector<double> earlier{1.15, 0.88, 0.90, 0.74, 1.21};
  const Shift shift = shift_between(at_term, earlier, 0.96);
  EXPECT_NEAR(shift.middle, 0.305, 1e-9);
  ASSERT_TRUE(shift.low && shift.high);
  EXPECT_NEAR(*shift.low, -0.15, 0.011) << "the seventh or eighth smallest difference";
  EXPECT_NEAR(*shift.high, 0.76, 0.011);
  EXPECT_GE(*shift.covers, 0.96);
}

TEST(ShiftBetween, FewerThanFiveOfEachHaveNoIntervalOfNinetyNinePercent) {
  const std::vector<double> four{1, 2, 3, 4}, five{1, 2, 3, 4, 5};
  EXPECT_FALSE(shift_between(four, four, 0.99).low);
  const Shift shift = shift_between(five, five, 0.99);
  ASSERT_TRUE(shift.low);
  EXPECT_EQ(*shift.low, -4);
  EXPECT_EQ(*shift.high, 4);
  EXPECT_NEAR(*shift.covers, 1 - 2.0 / 252, 1e-12);
}

TEST(ShiftBetween, AShiftMovesAllOfItAndNothingElse) {
  const std::vector<double> values{3, 1, 4, 1.5, 9, 2.6, 5};
  std::vector<double> moved;
  for (const double value : values) moved.push_back(value + 10);
  const Shift at_rest = shift_between(values, values, 0.95), shift = shift_between(moved, values, 0.95);
  EXPECT_EQ(at_rest.middle, 0);
  EXPECT_NEAR(shift.middle, 10, 1e-12);
  EXPECT_NEAR(*shift.low - 10, *at_rest.low, 1e-12);
  EXPECT_NEAR(*shift.high - 10, *at_rest.high, 1e-12);
}

}  // namespace
}  // namespace tutti::harness::statistics
