// SPDX-License-Identifier: Apache-2.0
#include "suites/perf/average.h"

#include <gtest/gtest.h>

namespace tutti::perf {
namespace {

TEST(ReportedTime, IsRank0sTheMeanTheLeastOrTheMost) {
  // Of four ranks: 20, 10, 90 and 40 us.
  const harness::StreamResult result{.rank0_us = 20, .mean_us = 40, .least_us = 10, .most_us = 90};
  EXPECT_EQ(reported_us(result, 0), 20);
  EXPECT_EQ(reported_us(result, 1), 40);
  EXPECT_EQ(reported_us(result, 2), 10);
  EXPECT_EQ(reported_us(result, 3), 90);
}

}  // namespace
}  // namespace tutti::perf
