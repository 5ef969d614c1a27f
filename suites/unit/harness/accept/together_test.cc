// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/together.h"

#include <vector>

#include <gtest/gtest.h>

#include "harness/accept/pretend.h"

namespace tutti::harness::accept {
namespace {

std::vector<Finding> found_with(std::vector<Fault> faults) {
  PretendedCrew crew({.nodes = 16, .leaf_size = 4, .noise = {}, .faults = std::move(faults), .seed = 5});
  std::vector<int> nodes;
  for (int node = 0; node < crew.nodes(); ++node) nodes.push_back(node);
  Observer observer;
  const PairsPlan plan;
  Together together(crew, plan, nodes, observer);
  together.run();
  Findings findings;
  findings.nodes.resize(nodes.size());
  together.add_to(findings);
  return findings.parts;
}

TEST(AcceptTogether, FindWhoIsSlowWhenAllPlay) {
  EXPECT_TRUE(found_with({}).empty());
  const auto found = found_with({{.trouble = Trouble::crowd, .first = 6, .share = 0.3}});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().first, 6);
  EXPECT_EQ(found.front().judgement.verdict, Verdict::fail);
  EXPECT_NEAR(found.front().judgement.middle, -0.36, 0.05);
}

TEST(AcceptTogether, ALeafOfSlowNodesIsItsUplink) {
  std::vector<Fault> faults;
  for (int node = 4; node < 8; ++node) faults.push_back({.trouble = Trouble::crowd, .first = node, .share = 0.3});
  const auto found = found_with(faults);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().what, Class::uplink);
  EXPECT_EQ(found.front().first, 1);
}

TEST(AcceptTogether, ARoundThatDoesNotEndIsTold) {
  const auto found = found_with({{.trouble = Trouble::hung, .first = 2, .second = 9}});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().what, Class::hung);
  EXPECT_EQ(found.front().members.size(), 16U);
}

}  // namespace
}  // namespace tutti::harness::accept
