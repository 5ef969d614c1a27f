// SPDX-License-Identifier: Apache-2.0
// When a wait ends, from literal readings of a clock.
#include "harness/measure/deadline.h"

#include <gtest/gtest.h>

#include "suites/unit/harness/measure/board_memory.h"

namespace tutti::harness::measure {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(Deadline, PassesOnceItWasSeenForAWhile) {
  const BoardMemory memory(1);
  Deadline deadline(memory.board(), 5 * kSecond);
  EXPECT_FALSE(deadline.has_passed(5 * kSecond - 1));
  EXPECT_FALSE(deadline.has_passed(20 * kSecond)) << "seen for the first time";
  EXPECT_FALSE(deadline.has_passed(20 * kSecond + Deadline::kSureAfterNs - 1));
  EXPECT_TRUE(deadline.has_passed(20 * kSecond + Deadline::kSureAfterNs));
}

TEST(Deadline, WhatTheJobStoodStillDoesNotCount) {
  const BoardMemory memory(1);
  const Board board = memory.board();
  board.stood_ns() = 7 * kSecond;  // before it began
  Deadline deadline(board, 5 * kSecond);
  board.stood_ns() = 9 * kSecond;
  EXPECT_FALSE(deadline.has_passed(7 * kSecond - 1));
  EXPECT_FALSE(deadline.has_passed(7 * kSecond));
  EXPECT_TRUE(deadline.has_passed(8 * kSecond));
  deadline.begin_anew(9 * kSecond);
  EXPECT_FALSE(deadline.has_passed(8 * kSecond));
  EXPECT_FALSE(deadline.has_passed(10 * kSecond));
  EXPECT_TRUE(deadline.has_passed(11 * kSecond));
}

TEST(Deadline, IsLaterIfTheStandstillIsToldAfterwards) {
  const BoardMemory memory(1);
  const Board board = memory.board();
  Deadline deadline(board, 5 * kSecond);
  EXPECT_FALSE(deadline.has_passed(11 * kSecond));
  board.stood_ns() = 6 * kSecond + Deadline::kSureAfterNs;
  EXPECT_FALSE(deadline.has_passed(11 * kSecond + Deadline::kSureAfterNs - 1));
}

}  // namespace
}  // namespace tutti::harness::measure
