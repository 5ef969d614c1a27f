// SPDX-License-Identifier: Apache-2.0
#include "harness/board/rank_standing.h"

#include <gtest/gtest.h>

namespace tutti::harness::board {
namespace {

TEST(RankStanding, ComesBackFromItsText) {
  for (const RankStanding& standing :
       {RankStanding{.text = "has left"},
        RankStanding{.text = "a \"quoted\"\nword", .wait = RankWait{.operation = 17, .step = 2, .peer = 0, .bytes = 8}},
        RankStanding{.text = "", .wait = RankWait{}}}) {
    const auto back = standing_from_json(to_json(standing));
    ASSERT_TRUE(back.is_ok()) << back.status().message();
    EXPECT_EQ(back.value(), standing);
  }
}

TEST(RankStanding, AnotherTextIsRefused) {
  for (const char* text :
       {"", "[]", "{}", R"({"text": 3})", R"({"text": "", "wait": 1})", R"({"text": "", "wait": {"operation": -1}})"}) {
    EXPECT_FALSE(standing_from_json(text).is_ok()) << text;
  }
}

}  // namespace
}  // namespace tutti::harness::board
