// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/cluster_file.h"

#include <string>

#include <gtest/gtest.h>

namespace tutti::harness::accept {
namespace {

std::string refusal_of(const std::string& text) {
  const auto cluster = cluster_from_toml(text);
  return cluster.is_ok() ? "" : std::string(cluster.status().message());
}

TEST(ClusterFile, SaysNodesNoiseAndFaults) {
  const auto read = cluster_from_toml(R"(
nodes = 64
leaf = 16
noise = "heavy"
seed = 7
older = "25%"
older_by = "20%"
rails = ["ib0", "ib1"]
[[fault]]
what = "nic-out"
node = "node17"
share = "31%"
rail = "ib1"
[[fault]]
what = "hung"
nodes = ["node22", "node40"]
[[fault]]
what = "uplink"
leaf = "C"
share = "10%"
)");
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  const PretendedCluster& cluster = read.value();
  EXPECT_EQ(cluster.nodes, 64);
  EXPECT_EQ(cluster.leaf_size, 16);
  EXPECT_TRUE(cluster.noise.has_heavy_tails);
  EXPECT_EQ(cluster.seed, 7U);
  EXPECT_EQ(cluster.generation, 0.25);
  EXPECT_EQ(cluster.generation_cost, 0.2);
  ASSERT_EQ(cluster.faults.size(), 3U);
  EXPECT_EQ(cluster.faults[0].trouble, Trouble::nic_out);
  EXPECT_EQ(cluster.faults[0].first, 16);
  EXPECT_EQ(cluster.faults[0].share, 0.31);
  EXPECT_EQ(cluster.faults[0].rail, 1);
  EXPECT_EQ(cluster.faults[1].rail, kNoRail);
  EXPECT_EQ(cluster.faults[1].first, 21);
  EXPECT_EQ(cluster.faults[1].second, 39);
  EXPECT_EQ(cluster.faults[2].first, 2);
}

TEST(ClusterFile, NamesTheLineAndTheNearestRight) {
  EXPECT_EQ(refusal_of("nodes = 0"), "line 1: 'nodes' is 0: allowed are 1 to 4096: did you mean 1?");
  EXPECT_EQ(refusal_of("nodes = \"8\""), "line 1: 'nodes' must be a whole number");
  EXPECT_EQ(refusal_of("noise = \"typicl\""),
            "line 1: unknown noise 'typicl': did you mean 'typical'? (one of: quiet typical heavy states)");
  EXPECT_EQ(refusal_of("[[fault]]\nwhat = \"dead\"\nnode = \"node9\""),
            "line 3: 'node9' is no node: allowed are node1 to node8: did you mean 'node8'?");
  EXPECT_EQ(refusal_of("[[fault]]\nwhat = \"nic\"\nnode = \"node1\""), "line 1: \"nic\" needs `share = \"10%\"`");
  EXPECT_EQ(refusal_of("[[fault]]\nwhat = \"hung\"\nnodes = [\"node1\", \"node1\"]"),
            "line 3: 'nodes' names two that differ");
  EXPECT_EQ(refusal_of("[[fault]]\nwhat = \"uplink\"\nleaf = \"F\"\nshare = \"10%\""),
            "line 3: 'F' is no leaf: allowed are 'A' to 'B': did you mean 'A'?");
  EXPECT_EQ(refusal_of("[[fault]]\nwhat = \"nic\"\nnode = \"node1\"\nshare = \"100%\""),
            "line 4: 'share' is '100%': allowed are 0% to 99%: did you mean '99%'?");
  EXPECT_NE(refusal_of("nodez = 4").find("did you mean 'nodes'?"), std::string::npos) << refusal_of("nodez = 4");
  EXPECT_NE(refusal_of("nodes = [").find("line 1"), std::string::npos);
}

}  // namespace
}  // namespace tutti::harness::accept
