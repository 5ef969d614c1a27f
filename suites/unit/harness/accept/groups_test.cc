// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/groups.h"

#include <algorithm>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/accept/pretend.h"

namespace tutti::harness::accept {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

std::vector<int> all_of(const Crew& crew) {
  std::vector<int> nodes;
  for (int node = 0; node < crew.nodes(); ++node) nodes.push_back(node);
  return nodes;
}

Findings found_by(Crew& crew, bool soaks = false) {
  Observer observer;
  const PairsPlan plan;
  GroupsStage groups(crew, plan, all_of(crew), observer);
  if (soaks) {
    groups.soak(25);
  } else {
    groups.run(usual_group_tests(PairsPlan().bytes));
  }
  Findings findings;
  findings.nodes.resize(static_cast<std::size_t>(crew.nodes()));
  groups.add_to(findings);
  return findings;
}

std::vector<Finding> failures_of(std::vector<Fault> faults, bool soaks = false) {
  PretendedCrew crew({.nodes = 16, .leaf_size = 4, .noise = {}, .faults = std::move(faults), .seed = 5});
  return found_by(crew, soaks).parts;
}

TEST(AcceptGroups, HaveTwoFourEightAndAllNodes) {
  EXPECT_THAT(group_sizes(2), ElementsAre(2));
  EXPECT_THAT(group_sizes(6), ElementsAre(2, 4, 6));
  EXPECT_THAT(group_sizes(64), ElementsAre(2, 4, 8, 16, 32, 64));
}

TEST(AcceptGroups, AHealthyClusterHasFiguresForEachSizeAndNoFinding) {
  PretendedCrew crew({.nodes = 16, .leaf_size = 4, .noise = {}, .faults = {}, .seed = 5});
  Observer observer;
  const PairsPlan plan;
  GroupsStage groups(crew, plan, all_of(crew), observer);
  groups.run(usual_group_tests(PairsPlan().bytes));
  Findings findings;
  findings.nodes.resize(16);
  groups.add_to(findings);
  EXPECT_TRUE(findings.parts.empty());
  std::set<int> sizes;
  for (const SizeFigures& one : groups.figures()) sizes.insert(one.nodes);
  EXPECT_THAT(sizes, UnorderedElementsAre(2, 4, 8, 16));
}

TEST(AcceptGroups, ANodeThatIsSlowInGroupsFails) {
  const auto found = failures_of({{.trouble = Trouble::crowd, .first = 6, .share = 0.3}});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().first, 6);
  EXPECT_EQ(found.front().judgement.verdict, Verdict::fail);
}

TEST(AcceptGroups, AFailureIsNarrowedToTheNodesThatItNeeds) {
  for (const bool soaks : {false, true}) {
    for (const Trouble trouble : {Trouble::hung, Trouble::wrong}) {
      const auto found = failures_of({{.trouble = trouble, .first = 2, .second = 9}}, soaks);
      ASSERT_FALSE(found.empty());
      EXPECT_EQ(found.front().what, trouble == Trouble::hung ? Class::hung : Class::wrong);
      EXPECT_THAT(found.front().members, UnorderedElementsAre(2, 9));
    }
  }
}

/// Groups of five or more nodes hang.
class NoFive final : public Crew {
 public:
  [[nodiscard]] int nodes() const override { return 12; }
  [[nodiscard]] std::string name_of(int node) const override { return std::to_string(node); }
  [[nodiscard]] int leaf_of(int /*node*/) const override { return 0; }
  [[nodiscard]] std::vector<std::vector<Outcome>> play(const std::vector<Group>& groups,
                                                       const std::vector<Test>& tests) override {
    std::vector<std::vector<Outcome>> outcomes;
    for (const Group& group : groups) {
      const Outcome one{.ending = group.size() < 5 ? Ending::measured : Ending::hung, .log_speed = 1};
      outcomes.emplace_back(tests.size(), one);
    }
    return outcomes;
  }
};

TEST(AcceptGroups, WhatNeedsManyNodesIsNarrowedToAsFew) {
  NoFive crew;
  const Findings findings = found_by(crew);
  ASSERT_FALSE(findings.parts.empty());
  EXPECT_EQ(findings.parts.front().members.size(), 5U);
  EXPECT_LE(findings.parts.front().tests, 40);
}

}  // namespace
}  // namespace tutti::harness::accept
