// SPDX-License-Identifier: Apache-2.0
#include "harness/statistics/log_histogram.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::statistics {
namespace {

using ::testing::HasSubstr;

constexpr double kWithin = 0.011;

TEST(LogHistogram, QuantilesAreWithinABin) {
  LogHistogram histogram;
  for (int i = 1; i <= 1000; ++i) histogram.add(i);
  EXPECT_EQ(histogram.count(), 1000);
  for (const double share : {0.05, 0.5, 0.95, 0.99}) {
    EXPECT_NEAR(histogram.quantile(share), 1000 * share, 1000 * share * kWithin + 1) << share;
  }
}

TEST(LogHistogram, AQuantileIsTheLeastNumberThatSoManyDoNotExceed) {
  LogHistogram histogram;
  EXPECT_EQ(histogram.quantile(0.5), 0);
  for (int i = 0; i < 19; ++i) histogram.add(2);
  histogram.add(300);
  EXPECT_NEAR(histogram.quantile(0.5), 2, 2 * kWithin);
  EXPECT_NEAR(histogram.quantile(0.95), 2, 2 * kWithin);
  EXPECT_NEAR(histogram.quantile(0.96), 300, 300 * kWithin);
  EXPECT_NEAR(histogram.quantile(1), 300, 300 * kWithin);
  EXPECT_NEAR(histogram.quantile(0), 2, 2 * kWithin);
}

TEST(LogHistogram, WhatIsNotAboveZeroDoesNotCount) {
  LogHistogram histogram;
  for (const double value : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) histogram.add(value);
  EXPECT_EQ(histogram.count(), 0);
  for (const double value : {std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::max()}) {
    histogram.add(value);
    EXPECT_TRUE(LogHistogram::from_bins(histogram.bins()).is_ok()) << value;
  }
}

TEST(LogHistogram, SeveralAddUpAndAreReadAgain) {
  LogHistogram one, other;
  one.add(1);
  other.add(1);
  other.add(5);
  one.add(other);
  EXPECT_EQ(one.count(), 3);
  const auto back = LogHistogram::from_bins(one.bins());
  ASSERT_TRUE(back.is_ok());
  EXPECT_EQ(back.value().count(), 3);
  EXPECT_EQ(back.value().quantile(0.9), one.quantile(0.9));
}

TEST(LogHistogram, DamageIsRefused) {
  EXPECT_THAT(LogHistogram::from_bins({{LogHistogram::kMostBin + 1, 1}}).status().message(), HasSubstr("bin 35201"));
  EXPECT_THAT(LogHistogram::from_bins({{0, 0}}).status().message(), HasSubstr("a count of 0"));
  const std::int64_t most = std::int64_t{1} << 53;
  EXPECT_TRUE(LogHistogram::from_bins({{0, most}}).is_ok());
  EXPECT_FALSE(LogHistogram::from_bins({{0, most}, {1, 1}}).is_ok());
}

}  // namespace
}  // namespace tutti::harness::statistics
