// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/dealt_ranks.h"

#include <gtest/gtest.h>

namespace tutti::harness::cases {
namespace {

std::vector<int> ranks_dealt(std::string_view text, int ranks) {
  const Hosts hosts = dealt_to(parse_hosts(text).value(), ranks);
  std::vector<int> host_of;
  for (int rank = 0; rank < ranks; ++rank) host_of.push_back(hosts.host_of(rank));
  return host_of;
}

TEST(DealtRanks, EachHostInItsTurnGetsOneMoreWhileItHasRoom) {
  EXPECT_EQ(ranks_dealt("a:2,b:2", 2), (std::vector{0, 1}));
  EXPECT_EQ(ranks_dealt("a:2,b:2", 3), (std::vector{0, 0, 1}));
  EXPECT_EQ(ranks_dealt("a:1,b:3", 4), (std::vector{0, 1, 1, 1}));
  EXPECT_EQ(ranks_dealt("a:3,b:1", 3), (std::vector{0, 0, 1}));
  EXPECT_EQ(ranks_dealt("a:3,b:1", 1), (std::vector{0}));
}

}  // namespace
}  // namespace tutti::harness::cases
