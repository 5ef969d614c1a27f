// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/rings.h"

#include <numeric>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "harness/accept/pretend.h"

namespace tutti::harness::accept {
namespace {

std::vector<Finding> found_with(std::vector<Fault> faults, int nodes_there = 16) {
  PretendedCrew crew({.nodes = nodes_there, .leaf_size = 4, .noise = {}, .faults = std::move(faults), .seed = 5});
  std::vector<int> nodes;
  for (int node = 0; node < crew.nodes(); ++node) nodes.push_back(node);
  Observer observer;
  const PairsPlan plan;
  Rings rings(crew, plan, "rings", observer);
  rings.run(visits_of_rings(nodes, 1));
  Findings findings;
  findings.nodes.resize(nodes.size());
  rings.add_to(findings);
  return findings.parts;
}

TEST(AcceptRings, FindWhoIsSlowWhenAllPlay) {
  EXPECT_TRUE(found_with({}).empty());
  const auto found = found_with({{.trouble = Trouble::crowd, .first = 6, .share = 0.3}});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().first, 6);
  EXPECT_EQ(found.front().judgement.verdict, Verdict::fail);
  EXPECT_NEAR(found.front().judgement.middle, -0.36, 0.05);
}

TEST(AcceptRings, ALeafOfSlowNodesIsItsUplink) {
  std::vector<Fault> faults;
  for (int node = 4; node < 8; ++node) faults.push_back({.trouble = Trouble::crowd, .first = node, .share = 0.3});
  const auto found = found_with(faults, 32);  // each slows a neighbour too: of 16 that would be half
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().what, Class::uplink);
  EXPECT_EQ(found.front().first, 1);
}

TEST(AcceptRings, ShiftsHaveEachDistanceAndTwoVisits) {
  const RingVisits few = visits_of_shifts({4, 5, 6, 7}, 1);
  ASSERT_EQ(few.size(), 2U);
  for (const auto& visit : few) {
    EXPECT_EQ(visit.size(), 8U);
    std::set<int> next_of_first;
    for (const std::vector<Group>& rings : visit) next_of_first.insert(rings.front().at(1));
    EXPECT_EQ(next_of_first, (std::set<int>{5, 6, 7}));
  }
  std::vector<int> nodes(100);
  std::iota(nodes.begin(), nodes.end(), 0);
  const RingVisits many = visits_of_shifts(nodes, 1);
  EXPECT_EQ(many[0].size() + many[1].size(), 63U);
}

TEST(AcceptRings, ARoundThatDoesNotEndIsTold) {
  const auto found = found_with({{.trouble = Trouble::hung, .first = 2, .second = 9}});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().what, Class::hung);
  EXPECT_EQ(found.front().members.size(), 16U);
}

}  // namespace
}  // namespace tutti::harness::accept
