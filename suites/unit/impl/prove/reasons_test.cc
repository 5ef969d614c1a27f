// SPDX-License-Identifier: Apache-2.0
#include "impl/prove/reasons.h"

#include <gmock/gmock.h>

namespace tutti {
namespace {

using testing::ElementsAre;

TEST(Reasons, EachFaultIsKeptOnce) {
  Reasons reasons;
  EXPECT_TRUE(reasons.status().is_ok());
  reasons.add(error(Code::refuted, "ring on 4 ranks: the formula says 3, depth 4"));
  reasons.add(error(Code::refuted, "ring on 4 ranks, in place:\n  rank 2: race\n  rank 3: race"));
  reasons.add(error(Code::refuted, "ring on 4 ranks, out of place:\n  rank 1: race"));
  EXPECT_EQ(reasons.note(error(Code::resource, "no memory")).code(), Code::resource);
  EXPECT_TRUE(reasons.note(error(Code::refuted, "ring on 4 ranks: no order")).is_ok());
  EXPECT_EQ(reasons.status().code(), Code::refuted);
  EXPECT_THAT(reasons_in(reasons.status().message()),
              ElementsAre("ring on 4 ranks: the formula says 3, depth 4",
                          "ring on 4 ranks, in place:\n  rank 2: race\n  rank 3: race", "ring on 4 ranks: no order"));
}

TEST(Reasons, OfManyRanksTheFewestComeFirst) {
  const auto common = common_faults({{"all_reduce ring", 64, "ring on 64 ranks: depth 9"},
                                     {"all_reduce ring", 2, "ring on 2 ranks: depth 3"},
                                     {"all_reduce ring", 7, "ring on 7 ranks: depth 5"},
                                     {"all_reduce ring", 3, "ring on 3 ranks:\n  rank 1: race"},
                                     {"scan ring", 5, "ring on 5 ranks: depth 3"}});
  ASSERT_EQ(common.size(), 3U);
  EXPECT_EQ(common[0].smallest.reason, "ring on 2 ranks: depth 3");
  EXPECT_EQ(common[0].others, 2);
  EXPECT_EQ(common[0].most_ranks, 64);
  EXPECT_EQ(common[1].smallest.reason, "ring on 3 ranks:\n  rank 1: race");
  EXPECT_EQ(common[1].others, 0);
  EXPECT_EQ(common[2].smallest.subject, "scan ring");
}

}  // namespace
}  // namespace tutti
