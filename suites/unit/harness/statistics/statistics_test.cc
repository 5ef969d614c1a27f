// SPDX-License-Identifier: Apache-2.0
#include "harness/statistics/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace tutti::harness::statistics {
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
  EXPECT_FALSE(summarise(descending_from(9)).p90.has_value());
  EXPECT_EQ(summarise(descending_from(10)).p90, 9.0);
  EXPECT_FALSE(summarise(descending_from(19)).p95.has_value());
  EXPECT_EQ(summarise(descending_from(20)).p95, 19.0);
  EXPECT_EQ(summarise(descending_from(30)).p95, 29.0);
  EXPECT_FALSE(summarise(descending_from(99)).p99.has_value());
  EXPECT_EQ(summarise(descending_from(100)).p99, 99.0);
  EXPECT_EQ(summarise(descending_from(101)).p99, 100.0);
}

TEST(StatisticsInOrder, FewSamplesHaveNoInterval) {
  EXPECT_EQ(summarise_in_order({}).samples, 0);
  const OrderedSummary summary = summarise_in_order(descending_from(11));
  EXPECT_EQ(summary.median, 6.0);
  EXPECT_FALSE(summary.ci_low || summary.ci_high || summary.sure_low || summary.autocorrelation);
  EXPECT_TRUE(summarise_in_order(descending_from(12)).ci_low.has_value());
}

/// 1..n, one of the lower half after one of the upper.
std::vector<double> alternating(int n) {
  std::vector<double> samples;
  for (int i = 0; i < n; ++i) samples.push_back(i % 2 == 0 ? n - i / 2 : (i + 1) / 2);
  return samples;
}

TEST(StatisticsInOrder, TheEndsLieBetweenTwoSamples) {
  const OrderedSummary summary = summarise_in_order(alternating(401));
  ASSERT_EQ(summary.inflation, 1);
  EXPECT_EQ(summary.median, 201.0);
  // 201 -+ 1.959964 / 2 x sqrt(401), and 4 / 2 x sqrt(401)
  EXPECT_NEAR(*summary.ci_low, 201 - 19.6241, 1e-4);
  EXPECT_NEAR(*summary.ci_high, 201 + 19.6241, 1e-4);
  EXPECT_NEAR(*summary.sure_low, 201 - 40.0500, 1e-4);
  EXPECT_NEAR(*summary.sure_high, 201 + 40.0500, 1e-4);
}

TEST(StatisticsInOrder, NeighboursThatResembleEachOtherWidenTheInterval) {
  const OrderedSummary rising = summarise_in_order(descending_from(401));
  EXPECT_GT(*rising.autocorrelation, 0.98);
  EXPECT_GT(rising.inflation, 10);
  EXPECT_LT(*rising.ci_low, 201 - 3 * 19);
}

TEST(StatisticsInOrder, AClockThatTicksLeavesWidth) {
  std::vector<double> samples(200, 0.12);
  for (std::size_t i = 0; i < samples.size(); i += 3) samples[i] = 0.13;  // a third
  EXPECT_EQ(summarise_in_order(samples).median, 0.12);
  const OrderedSummary ticked = summarise_in_order(samples, 0.01);
  EXPECT_NEAR(*ticked.median, 0.12 + 0.01 * 0.27, 0.001) << "two thirds lie around 0.12, up to a tick from it";
  EXPECT_LT(*ticked.ci_low, *ticked.median);
  EXPECT_GT(*ticked.ci_high, *ticked.median);
  EXPECT_EQ(ticked.min, 0.12) << "what was read";
  EXPECT_EQ(ticked.median, summarise_in_order(samples, 0.01).median) << "the same again";
  std::rotate(samples.begin(), samples.begin() + 1, samples.end());
  EXPECT_NE(ticked.median, summarise_in_order(samples, 0.01).median) << "other noise for other readings";
}

TEST(StatisticsOfLaunches, SpreadBetweenAndWithin) {
  EXPECT_FALSE(spread_of({}).between || spread_of({}).within);
  const std::vector<Summary> launches{{.median = 10, .ci_low = 9, .ci_high = 11},
                                      {.median = 14, .ci_low = 11, .ci_high = 17},
                                      {.median = 11, .ci_low = 9, .ci_high = 13},
                                      {.median = 12}};
  EXPECT_EQ(spread_of(launches).between, 2.0);
  EXPECT_EQ(spread_of(launches).within, 2.0);
  EXPECT_FALSE(spread_of(std::span(launches).first(1)).between.has_value());
}

TEST(StatisticsDeathTest, ASampleThatIsNotANumberIsABug) {
  const std::vector<double> samples{1.0, std::numeric_limits<double>::quiet_NaN()};
  EXPECT_DEATH(static_cast<void>(summarise(samples)), "not finite");
}

}  // namespace
}  // namespace tutti::harness::statistics
