// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/pair_player.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/accept/acceptance.h"
#include "harness/accept/pretend.h"
#include "harness/accept/sentences.h"

namespace tutti::harness::accept {
namespace {

using ::testing::HasSubstr;

/// The pair of nodes 2 and 5 fails in its first so many plays.
class FailingPair final : public Crew {
 public:
  FailingPair(int nodes, int failures)
      : crew_({.nodes = nodes, .leaf_size = nodes, .noise = {}, .faults = {}, .seed = 3}), failures_(failures) {}
  [[nodiscard]] int nodes() const override { return crew_.nodes(); }
  [[nodiscard]] std::string name_of(int node) const override { return crew_.name_of(node); }
  [[nodiscard]] int leaf_of(int node) const override { return crew_.leaf_of(node); }
  [[nodiscard]] bool has_failed() const { return has_failed_; }
  [[nodiscard]] std::vector<std::vector<Outcome>> play(const std::vector<Group>& groups,
                                                       const std::vector<Test>& tests) override {
    auto outcomes = crew_.play(groups, tests);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const bool is_pair =
          groups[i].size() == 2 && std::ranges::count(groups[i], 2) + std::ranges::count(groups[i], 5) == 2;
      if (!is_pair || failures_ == 0) continue;
      --failures_;
      has_failed_ = true;
      for (Outcome& one : outcomes[i]) one = {.ending = Ending::failed, .detail = "rank 1 was killed by signal 9"};
    }
    return outcomes;
  }

 private:
  PretendedCrew crew_;
  int failures_;
  bool has_failed_ = false;
};

AcceptReport report_of(int failures) {
  FailingPair crew(8, failures);
  Observer observer;
  return accept_cluster(crew, {.stages = {"pairs"}}, observer);
}

TEST(AcceptPairPlayer, APairThatFailsAndThenWorksIsASuspect) {
  const AcceptReport report = report_of(1);
  ASSERT_EQ(report.findings.parts.size(), 1U);
  const Finding& finding = report.findings.parts.front();
  EXPECT_EQ(finding.judgement.verdict, Verdict::suspect);
  EXPECT_EQ(finding.tests, 2);
  EXPECT_EQ(conclusion_of(report), Conclusion::undecided);
  EXPECT_EQ(
      sentence_of(report, finding),
      "node3 and node6 failed with each other once, and not when they played again: rank 1 was killed by signal 9");
}

TEST(AcceptPairPlayer, APairThatFailsAtTheEndOfTheTimeIsASuspect) {
  FailingPair crew(8, 1000);
  class Stopped final : public Observer {
   public:
    explicit Stopped(const FailingPair& crew) : crew_(crew) {}
    [[nodiscard]] bool is_stopped() override { return crew_.has_failed(); }

   private:
    const FailingPair& crew_;
  } observer(crew);
  const AcceptReport report = accept_cluster(crew, {.stages = {"pairs"}}, observer);
  const auto failed = std::ranges::find(report.findings.parts, Class::hung, &Finding::what);
  ASSERT_NE(failed, report.findings.parts.end());
  EXPECT_EQ(failed->judgement.verdict, Verdict::suspect);
  EXPECT_EQ(failed->tests, 1);
  EXPECT_TRUE(failed->thirds.empty());
  EXPECT_EQ(sentence_of(report, *failed),
            "node3 and node6 failed with each other once, and did not play again: rank 1 was killed by signal 9");
}

TEST(AcceptPairPlayer, APairThatFailsTwiceFails) {
  const AcceptReport report = report_of(1000);
  ASSERT_EQ(report.findings.parts.size(), 1U);
  EXPECT_EQ(report.findings.parts.front().judgement.verdict, Verdict::fail);
  EXPECT_EQ(report.findings.parts.front().tests, 2);
  EXPECT_EQ(conclusion_of(report), Conclusion::broken);
  EXPECT_THAT(sentence_of(report, report.findings.parts.front()), HasSubstr("node3 and node6 hang with each other"));
}

TEST(AcceptPairs, AnUnsteadyNodeIsOneFindingAndItsOpenLinksAreNone) {
  int nodes_found = 0;
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    PretendedCrew crew({.nodes = 32,
                        .leaf_size = 16,
                        .noise = {},
                        .faults = {{.trouble = Trouble::unsteady, .first = 9, .share = 0.4}},
                        .seed = seed});
    Observer observer;
    int nodes = 0, links = 0;
    for (const Finding& one : accept_cluster(crew, {.stages = {"pairs"}}, observer).findings.parts) {
      EXPECT_TRUE(one.first == 9 || one.second == 9) << to_string(one.what);
      nodes += is_of_node(one);
      links += is_of_link(one) && one.judgement.verdict != Verdict::fail;
    }
    EXPECT_LE(nodes, 1);
    EXPECT_LE(links, nodes > 0 ? 0 : 2);
    nodes_found += nodes;
  }
  EXPECT_GE(nodes_found, 2);
}

}  // namespace
}  // namespace tutti::harness::accept
