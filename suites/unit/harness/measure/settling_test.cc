// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/settling.h"

#include <gtest/gtest.h>

namespace tutti::harness::measure {
namespace {

/// An interval that reaches so far to either side, and a sure one.
OrderedSummary summary_of(double median, double half, double sure_half, std::int64_t samples = 30) {
  OrderedSummary summary;
  summary.samples = samples;
  summary.median = median;
  summary.ci_low = median - half;
  summary.ci_high = median + half;
  summary.sure_low = median - sure_half;
  summary.sure_high = median + sure_half;
  return summary;
}

TEST(Settling, OnePercentAndTwoBelowFiftyMicroseconds) {
  EXPECT_TRUE(is_settled(summary_of(100, 0.999, 2)));
  EXPECT_FALSE(is_settled(summary_of(100, 1.001, 2)));
  EXPECT_TRUE(is_settled(summary_of(40, 0.799, 1.6)));
  EXPECT_FALSE(is_settled(summary_of(40, 0.801, 1.6)));
}

TEST(Settling, EachSideCounts) {
  OrderedSummary summary = summary_of(100, 0.5, 1);
  summary.ci_low = 99.9;
  summary.ci_high = 101.1;
  EXPECT_FALSE(is_settled(summary)) << "1.2 % wide, and 1.1 % of it above";
  summary.ci_low = 98.9;
  summary.ci_high = 100.1;
  EXPECT_FALSE(is_settled(summary));
  summary = summary_of(100, 0.5, 1);
  summary.sure_low = 97.9;
  EXPECT_FALSE(is_settled(summary)) << "1 % x 4 / 1.96 = 2.0408 %";
  summary.sure_low = 98;
  summary.sure_high = 102.1;
  EXPECT_FALSE(is_settled(summary));
}

TEST(Settling, TheSurerIntervalMustBeNarrowToo) {
  EXPECT_TRUE(is_settled(summary_of(100, 0.5, 2.04)));
  EXPECT_FALSE(is_settled(summary_of(100, 0.5, 2.05))) << "1 % x 4 / 1.96 = 2.0408 %";
}

TEST(Settling, NeedsThirtySamplesAndAnInterval) {
  EXPECT_FALSE(is_settled(summary_of(100, 0.1, 0.2, 29)));
  OrderedSummary without;
  without.samples = 100;
  without.median = 1;
  EXPECT_FALSE(is_settled(without));
}

TEST(Settling, LooksAtTwiceTheSamplesEachTime) {
  EXPECT_EQ(next_look(0), 30);
  EXPECT_EQ(next_look(29), 30);
  EXPECT_EQ(next_look(30), 60);
  EXPECT_EQ(next_look(75), 120) << "blocks end where they end";
  EXPECT_EQ(next_look(3840), kMostSamples);
}

TEST(WarmUp, IsOverWhenThreeBatchesInARowHaveNotImproved) {
  WarmUp warm_up;
  for (const double batch : {100.0, 50.0, 49.9, 40.0, 41.0, 39.9}) {
    warm_up.add(batch);
    EXPECT_FALSE(warm_up.is_over()) << batch;
  }
  warm_up.add(45.0);
  EXPECT_TRUE(warm_up.is_over()) << "39.9 is not one percent faster than 40";
}

TEST(WarmUp, GoesOnWhileBatchesImprove) {
  WarmUp warm_up;
  for (double batch = 100; batch > 1; batch *= 0.98) {
    warm_up.add(batch);
    EXPECT_FALSE(warm_up.is_over());
  }
}

}  // namespace
}  // namespace tutti::harness::measure
