// SPDX-License-Identifier: Apache-2.0
#include "impl/execute/crowd_watch.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Time = CrowdWatch::Time;

class Crowd : public testing::Test {
 protected:
  /// The next look, after `passed`.
  void look_after(CrowdWatch::Clock::duration passed) { watch_.look(now_ += passed); }
  [[nodiscard]] bool is_crowded() const { return watch_.is_crowded(now_); }
  /// How long a crowd is believed in that is seen now.
  [[nodiscard]] milliseconds lasts() const {
    milliseconds time(0);
    while (watch_.is_crowded(now_ + time)) ++time;
    return time;
  }

  Time now_ = Time(std::chrono::hours(1));
  CrowdWatch watch_{microseconds(500)};
};

TEST_F(Crowd, LooksThatFollowEachOtherShowNone) {
  watch_.begin(now_);
  for (int i = 0; i < 1000; ++i) look_after(microseconds(499));
  EXPECT_FALSE(is_crowded());
}

TEST_F(Crowd, ALongTimeBetweenTwoLooksShowsOne) {
  watch_.begin(now_);
  look_after(microseconds(500));
  EXPECT_TRUE(is_crowded());
  EXPECT_EQ(lasts(), milliseconds(20));
}

TEST_F(Crowd, WhatAWaitDidElseIsNoGap) {
  watch_.begin(now_);
  watch_.begin(now_ += milliseconds(50));
  look_after(microseconds(1));
  EXPECT_FALSE(is_crowded());
}

TEST_F(Crowd, OneThatStaysIsBelievedInForLonger) {
  watch_.begin(now_);
  for (const int expected : {20, 40, 80, 160, 320, 640, 1000, 1000}) {
    look_after(microseconds(500));
    EXPECT_EQ(lasts(), milliseconds(expected));
    watch_.begin(now_ += milliseconds(expected));
    EXPECT_FALSE(is_crowded());
  }
}

TEST_F(Crowd, OneThatComesMuchLaterIsANewOne) {
  watch_.begin(now_);
  look_after(microseconds(500));
  watch_.begin(now_ += std::chrono::seconds(2));
  look_after(microseconds(500));
  EXPECT_EQ(lasts(), milliseconds(20));
}

}  // namespace
}  // namespace tutti
