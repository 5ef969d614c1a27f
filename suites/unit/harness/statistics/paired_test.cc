// SPDX-License-Identifier: Apache-2.0
#include "harness/statistics/paired.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace tutti::harness::statistics {
namespace {

TEST(SignedRank, CountsSubsetsOfTheRanks) {
  EXPECT_DOUBLE_EQ(signed_rank_probability(3, 3), 5.0 / 8) << "{}, {1}, {2}, {3}, {1, 2}";
  EXPECT_DOUBLE_EQ(signed_rank_probability(8, 0), 1.0 / 256);
  EXPECT_EQ(signed_rank_probability(8, -1), 0);
  EXPECT_EQ(signed_rank_probability(8, 36), 1);
}

// The largest sum that is significant at 0.05 on two sides, from Wilcoxon's table as it is printed in textbooks
// (Hollander & Wolfe, table A.4; Siegel, table G). The sum itself is significant, the next one is not.
TEST(SignedRank, CriticalValuesOfThePublishedTable) {
  const std::vector<std::pair<int, int>> table{{6, 0},   {7, 2},   {8, 3},   {9, 5},   {10, 8},  {11, 10},
                                               {12, 13}, {13, 17}, {14, 21}, {15, 25}, {16, 29}, {17, 34},
                                               {18, 40}, {19, 46}, {20, 52}, {25, 89}, {30, 137}};
  for (const auto& [pairs, critical] : table) {
    EXPECT_LE(signed_rank_probability(pairs, critical), 0.025) << pairs;
    EXPECT_GT(signed_rank_probability(pairs, critical + 1), 0.025) << pairs;
  }
}

TEST(SignedRank, TheNormalApproximationGoesOnWhereCountingEnds) {
  // 100 pairs: mean 2525, standard deviation 290.84
  const double counted = signed_rank_probability(100, 1955);
  const double approximate = 0.5 * std::erfc((2525 - 1955.5) / 290.8393 / std::sqrt(2.0));
  EXPECT_NEAR(counted, approximate, 2e-4);
  EXPECT_NEAR(signed_rank_probability(101, 101 * 102 / 4), 0.5, 1e-3);
}

// Hollander & Wolfe, example 3.1: Hamilton depression scale before and after a tranquillizer, nine patients; their
// estimate is -0.46 and their 96.1 % interval from -0.786 to -0.010, here with the other sign.
TEST(MiddleOfPairs, OfAPublishedExample) {
  const std::vector<double> before{1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30};
  const std::vector<double> after{0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29};
  std::vector<double> differences;
  for (std::size_t i = 0; i < before.size(); ++i) differences.push_back(before[i] - after[i]);
  const MiddleOfPairs result = middle_of_pairs(differences);
  EXPECT_EQ(result.pairs, 9);
  EXPECT_NEAR(result.middle, 0.46, 1e-9);
  ASSERT_TRUE(result.low && result.high && result.covers);
  EXPECT_NEAR(*result.low, 0.010, 1e-9);
  EXPECT_NEAR(*result.high, 0.786, 1e-9);
  EXPECT_NEAR(*result.covers, 0.961, 5e-4);
}

TEST(MiddleOfPairs, FewPairsHaveNoIntervalAndEightHaveOneOf992) {
  const std::vector<double> differences{1, 2, 4, 8, 16, 32, 64, 128};
  EXPECT_FALSE(middle_of_pairs(std::span(differences).first(5)).low.has_value());
  EXPECT_EQ(middle_of_pairs(std::span(differences).first(5)).middle, 5.0);
  const MiddleOfPairs six = middle_of_pairs(std::span(differences).first(6));
  EXPECT_EQ(six.low, 1.0) << "the full range";
  EXPECT_EQ(six.high, 32.0);
  EXPECT_DOUBLE_EQ(*six.covers, 1 - 2.0 / 64);
  const MiddleOfPairs sure = middle_of_pairs(differences, 0.99);
  EXPECT_EQ(sure.low, 1.0);
  EXPECT_EQ(sure.high, 128.0);
  EXPECT_DOUBLE_EQ(*sure.covers, 1 - 2.0 / 256);
}

TEST(MiddleOfPairs, OneOutlierHardlyMovesIt) {
  const std::vector<double> differences{0.01, -0.01, 0.02, -0.02, 0.0, 0.01, -0.01, 9.0};
  const MiddleOfPairs result = middle_of_pairs(differences);
  EXPECT_NEAR(result.middle, 0.0, 0.01);
  EXPECT_LT(*result.low, 0);
  EXPECT_GT(*result.high, 0);
}

TEST(MiddleOfPairsDeathTest, ADifferenceThatIsNotANumberIsABug) {
  const std::vector<double> differences{0.1, std::numeric_limits<double>::infinity()};
  EXPECT_DEATH(static_cast<void>(middle_of_pairs(differences)), "not finite");
}

}  // namespace
}  // namespace tutti::harness::statistics
