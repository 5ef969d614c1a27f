// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/suite_file.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/accept/pretend.h"

namespace tutti::harness::accept {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string refusal_in(std::string_view text) { return std::string(plan_from_toml(text).status().message()); }

TEST(AcceptSuiteFile, SaysWhatIsPlayed) {
  const auto read = plan_from_toml(
      "margin = \"8%\"\ntoo_fast = \"20%\"\nconfidence = \"99%\"\nmessage_size = \"4M\"\nseed = 9\n"
      "[[stage]]\nname = \"pairs\"\nfull = true\n[[stage]]\nname = \"soak\"\ntime = \"5m\"\nblocking = false\n");
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  const AcceptPlan& plan = read.value();
  EXPECT_DOUBLE_EQ(plan.pairs.limits.margin, 0.08);
  EXPECT_DOUBLE_EQ(plan.pairs.limits.confidence, 0.99);
  EXPECT_DOUBLE_EQ(plan.pairs.limits.too_fast, 0.2);
  EXPECT_EQ(plan.pairs.bytes, std::size_t{4} << 20);
  EXPECT_EQ(plan.pairs.seed, 9U);
  EXPECT_THAT(plan.stages, ElementsAre("pairs", "soak"));
  EXPECT_THAT(plan.not_blocking, ElementsAre("soak"));
  EXPECT_TRUE(plan.pairs.is_full);
  EXPECT_DOUBLE_EQ(plan.soak_seconds, 300);
}

TEST(AcceptSuiteFile, WithoutStagesAllArePlayed) { EXPECT_EQ(plan_from_toml("").value().stages, all_stages()); }

TEST(AcceptSuiteFile, RefusesWhatItDoesNotKnowWithItsLine) {
  EXPECT_THAT(refusal_in("\nmargin = \"80%\""), HasSubstr("line 2: 'margin' is '80%': allowed are 0.5% to 50%"));
  EXPECT_THAT(refusal_in("confidence = \"100%\""), HasSubstr("allowed are 90% to 99.99%: did you mean '99.99%'?"));
  EXPECT_THAT(refusal_in("stage = []"), HasSubstr("line 1: 'stage' names none"));
  EXPECT_THAT(refusal_in("margn = \"5%\""), HasSubstr("line 1: unknown key 'margn': did you mean 'margin'?"));
  EXPECT_THAT(refusal_in("[[stage]]\nname = \"pears\""), HasSubstr("line 2: unknown stage 'pears'"));
  EXPECT_THAT(refusal_in("[[stage]]\nfull = true"), HasSubstr("line 1: a stage needs `name"));
  EXPECT_THAT(refusal_in("[[stage]]\nname = \"pairs\"\ntime = \"3s\""), HasSubstr("line 3: unknown key 'time'"));
  EXPECT_THAT(refusal_in("[[stage]]\nname = \"soak\"\ntime = \"3\""), HasSubstr("line 3: 'time': duration '3'"));
  EXPECT_THAT(refusal_in("[[stage]]\nname = \"soak\"\nblocking = 1"), HasSubstr("line 3: 'blocking' must be"));
  EXPECT_THAT(refusal_in("[[stage]]\nname = \"soak\"\n[[stage]]\nname = \"soak\""), HasSubstr("line 4"));
  EXPECT_THAT(refusal_in("stage = 3"), HasSubstr("line 1: 'stage' must be tables"));
}

/// Keeps who played a measure.
class Played final : public Crew {
 public:
  explicit Played(PretendedCluster cluster) : crew_(std::move(cluster)) {}
  [[nodiscard]] int nodes() const override { return crew_.nodes(); }
  [[nodiscard]] std::string name_of(int node) const override { return crew_.name_of(node); }
  [[nodiscard]] int leaf_of(int node) const override { return crew_.leaf_of(node); }
  [[nodiscard]] std::vector<std::vector<Outcome>> play(const std::vector<Group>& groups,
                                                       const std::vector<Test>& tests) override {
    if (tests.front().measure == Measure::ring) nodes_in_rings = groups.front().size();
    return crew_.play(groups, tests);
  }
  void pause() override { crew_.pause(); }
  std::size_t nodes_in_rings = 0;

 private:
  PretendedCrew crew_;
};

TEST(AcceptSuiteFile, AStageThatDoesNotBlockLeavesNoNodeOut) {
  for (const bool is_blocking : {true, false}) {
    Played crew({.nodes = 8, .leaf_size = 4, .noise = {}, .faults = {{.trouble = Trouble::dead, .first = 3}}});
    AcceptPlan plan{.stages = {"pairs", "rings"}};
    if (!is_blocking) plan.not_blocking = {"pairs"};
    Observer observer;
    const AcceptReport report = accept_cluster(crew, plan, observer);
    EXPECT_EQ(verdict_of(report, 3), Verdict::fail);
    EXPECT_EQ(crew.nodes_in_rings, is_blocking ? 7U : 8U);
  }
}

}  // namespace
}  // namespace tutti::harness::accept
