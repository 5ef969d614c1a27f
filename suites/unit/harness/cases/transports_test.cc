// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/transports.h"

#include <gtest/gtest.h>

namespace tutti::harness::cases {
namespace {

TEST(Transports, AnAlgorithmForEqualHostsIsFlatOnOthers) {
  const auto is_flat = [](const char* hosts, int ranks, const char* algorithm = "two_level") {
    Case one;
    one.collective = Collective::all_reduce;
    one.algorithm = algorithm;
    one.transport = "tcp";
    one.ranks = ranks;
    Conditions conditions;
    conditions.hosts = parse_hosts(hosts).value();
    return is_flat_on_hosts(one, conditions);
  };
  EXPECT_TRUE(is_flat("a:2,b:1", 3));
  EXPECT_TRUE(is_flat("a:2,b:2", 3)) << "that many are dealt out";
  EXPECT_FALSE(is_flat("a:2,b:1", 3, "ring"));
  EXPECT_FALSE(is_flat("a:2,b:1", 3, "none")) << "a reference's";
  EXPECT_FALSE(is_flat("a:2,b:2", 4));
  EXPECT_FALSE(is_flat("a:1,b:1,c:1", 3)) << "each rank is on a host of its own";
  EXPECT_FALSE(is_flat("a:3,b:1", 1)) << "one host";
}

TEST(Transports, PretendedHostsMayBeUnequalToo) {
  Case one;
  one.collective = Collective::barrier;
  one.algorithm = "two_level";
  one.transport = "tcp";
  one.ranks = 3;
  Conditions conditions;
  conditions.pretended_hosts = 2;
  EXPECT_TRUE(is_flat_on_hosts(one, conditions));
  one.ranks = 4;
  EXPECT_FALSE(is_flat_on_hosts(one, conditions));
}

}  // namespace
}  // namespace tutti::harness::cases
