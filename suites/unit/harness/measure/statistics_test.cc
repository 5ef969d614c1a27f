// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/statistics.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace tutti::harness {
namespace {

std::vector<double> descending_from(int n) {
  std::vector<double> samples;
  for (int i = n; i > 0; --i) samples.push_back(i);
  return samples;
}

TEST(Statistics, OfNothingIsEmpty) {
  const Summary summary = summarise({});
  EXPECT_EQ(summary.samples, 0);
  for (const auto& field :
       {summary.median, summary.ci_low, summary.ci_high, summary.min, summary.p95, summary.p99, summary.max}) {
    EXPECT_FALSE(field.has_value());
  }
}

TEST(Statistics, OneSampleIsItsOwnMedianWithoutInterval) {
  const Summary summary = summarise(std::vector{3.5});
  EXPECT_EQ(summary.samples, 1);
  EXPECT_EQ(summary.median, 3.5);
  EXPECT_EQ(summary.min, 3.5);
  EXPECT_EQ(summary.max, 3.5);
  EXPECT_FALSE(summary.ci_low || summary.ci_high || summary.p95 || summary.p99);
}

TEST(Statistics, MedianOfOddAndEvenNumbersOfUnsortedSamples) {
  EXPECT_EQ(summarise(std::vector{9.0, 1.0, 4.0}).median, 4.0);
  EXPECT_EQ(summarise(std::vector{9.0, 1.0, 4.0, 6.0}).median, 5.0);
  EXPECT_EQ(summarise(std::vector{1e308, 1.5e308}).median, 1.25e308) << "the sum of the two would overflow";
}

TEST(Statistics, EqualSamplesHaveAnIntervalOfNoWidth) {
  const Summary summary = summarise(std::vector<double>(7, 2.25));
  EXPECT_EQ(summary.median, 2.25);
  EXPECT_EQ(summary.ci_low, 2.25);
  EXPECT_EQ(summary.ci_high, 2.25);
}

// Ranks from published tables of the sign test (n, low, high) at 95 %.
TEST(Statistics, IntervalRanksAreTheBinomialOnes) {
  EXPECT_FALSE(median_interval_ranks(0).has_value());
  EXPECT_FALSE(median_interval_ranks(5).has_value());
  EXPECT_EQ(median_interval_ranks(6), (IntervalRanks{1, 6}));
  EXPECT_EQ(median_interval_ranks(8), (IntervalRanks{1, 8}));
  EXPECT_EQ(median_interval_ranks(9), (IntervalRanks{2, 8}));
  EXPECT_EQ(median_interval_ranks(10), (IntervalRanks{2, 9}));
  EXPECT_EQ(median_interval_ranks(20), (IntervalRanks{6, 15}));
  EXPECT_EQ(median_interval_ranks(30), (IntervalRanks{10, 21}));
  EXPECT_EQ(median_interval_ranks(50), (IntervalRanks{18, 33}));
  EXPECT_EQ(median_interval_ranks(100), (IntervalRanks{40, 61}));
}

TEST(Statistics, IntervalRanksOfManySamplesFollowTheNormalApproximation) {
  EXPECT_EQ(median_interval_ranks(10000), (IntervalRanks{4902, 5099}));
}

TEST(Statistics, IntervalIsMadeOfTheSamplesAtThoseRanks) {
  const Summary summary = summarise(descending_from(10));
  EXPECT_EQ(summary.median, 5.5);
  EXPECT_EQ(summary.ci_low, 2.0);
  EXPECT_EQ(summary.ci_high, 9.0);
  EXPECT_EQ(summary.min, 1.0);
  EXPECT_EQ(summary.max, 10.0);
}

TEST(Statistics, PercentilesAppearOnlyWhereTheSamplesSupportThem) {
  EXPECT_FALSE(summarise(descending_from(19)).p95.has_value());
  EXPECT_EQ(summarise(descending_from(20)).p95, 19.0);
  EXPECT_EQ(summarise(descending_from(30)).p95, 29.0);
  EXPECT_FALSE(summarise(descending_from(99)).p99.has_value());
  EXPECT_EQ(summarise(descending_from(100)).p99, 99.0);
  EXPECT_EQ(summarise(descending_from(101)).p99, 100.0);
}

TEST(StatisticsDeathTest, ASampleThatIsNotANumberIsABug) {
  const std::vector<double> samples{1.0, std::numeric_limits<double>::quiet_NaN()};
  EXPECT_DEATH(static_cast<void>(summarise(samples)), "not finite");
}

}  // namespace
}  // namespace tutti::harness
