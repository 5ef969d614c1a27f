// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/configuration.h"

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "harness/accept/acceptance.h"
#include "harness/accept/pretend.h"
#include "suites/unit/harness/accept/reports.h"

namespace tutti::harness::accept {
namespace {

PretendedCrew library_with(std::vector<Fault> faults) {
  return PretendedCrew(
      {.nodes = 8, .leaf_size = 4, .noise = {}, .faults = std::move(faults), .seed = 3, .library = "gloo"});
}

/// What becomes of `finding` where the cluster has this fault. Node 5 is number 4, node 2 number 1.
std::optional<Finding> of(const Fault& fault, const Finding& finding) {
  PretendedCrew crew = library_with({fault});
  Observer observer;
  const PairsPlan plan;
  return Configuration(crew, plan, {0, 2, 3, 5, 6, 7}, observer).of(finding);
}

TEST(AcceptConfiguration, IsToBlameWhereTheBareTransportPasses) {
  Fault fault{.trouble = Trouble::nic, .first = 4, .share = 0.3, .is_of_library = true};
  const Finding slow_node{.what = Class::nic, .first = 4, .judgement = slow()};
  const auto found = of(fault, slow_node);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->what, Class::configuration);
  EXPECT_EQ(found->members, std::vector<int>{4});
  EXPECT_NEAR(std::exp(found->judgement.middle), 0.7, 0.03);
  EXPECT_NEAR(found->bare.middle, 0, 0.03);
  EXPECT_FALSE(is_about(*found, 4)) << "no hardware";
  fault.is_of_library = false;
  EXPECT_FALSE(of(fault, slow_node).has_value()) << "both are slow";
  fault = {.trouble = Trouble::nic, .first = 0, .share = 0};
  EXPECT_FALSE(of(fault, slow_node).has_value()) << "neither is slow";
}

TEST(AcceptConfiguration, IsToBlameWhereOnlyTheLibraryHangs) {
  Fault fault{.trouble = Trouble::hung, .first = 1, .second = 4, .is_of_library = true};
  const Judgement failed{.verdict = Verdict::fail};
  for (const Finding& finding : {Finding{.what = Class::hung, .first = 1, .second = 4, .judgement = failed},
                                 Finding{.what = Class::hung, .judgement = failed, .members = {4, 1, 0}}}) {
    fault.is_of_library = true;
    const auto found = of(fault, finding);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->judgement.middle, 0);
    EXPECT_EQ(found->detail, "nothing came in 5 s");
    fault.is_of_library = false;
    EXPECT_FALSE(of(fault, finding).has_value()) << "the pair hangs by itself";
  }
  const Fault wrong{.trouble = Trouble::wrong, .first = 1, .second = 4, .is_of_library = true};
  EXPECT_FALSE(of(wrong, {.what = Class::wrong, .first = 1, .second = 4, .judgement = failed}).has_value())
      << "wrong data are never excused";
}

TEST(AcceptConfiguration, IsToBlameForANodeThatFailsAloneWithTheLibraryOnly) {
  for (const bool is_of_library : {true, false}) {
    PretendedCrew crew = library_with({{.trouble = Trouble::dead, .first = 4, .is_of_library = is_of_library}});
    Observer observer;
    const AcceptPlan plan{.stages = {"alone", "pairs"}};
    const AcceptReport report = accept_cluster(crew, plan, observer);
    ASSERT_EQ(report.findings.parts.size(), 1U);
    EXPECT_EQ(report.findings.parts.front().what, is_of_library ? Class::configuration : Class::dead);
    EXPECT_EQ(verdict_of(report, 4), is_of_library ? Verdict::skipped : Verdict::fail);
    EXPECT_EQ(is_excluded(report, 4), !is_of_library) << "no hardware of it has failed";
  }
}

TEST(AcceptConfiguration, IsToBlameForLessThanHalfTheSpeedOnAllNodes) {
  const auto ratio_with = [](double share) {
    PretendedCrew crew = library_with({{.trouble = Trouble::fleet, .share = share, .is_of_library = true}});
    Observer observer;
    const PairsPlan plan;
    return Configuration(crew, plan, {0, 1, 2, 3, 4, 5, 6, 7}, observer).ratio();
  };
  const auto far = ratio_with(0.6), near = ratio_with(0.3);
  ASSERT_TRUE(far && near);
  EXPECT_EQ(far->judgement.verdict, Verdict::fail);
  EXPECT_NEAR(std::exp(far->judgement.middle), 0.4, 0.03);
  EXPECT_NE(near->judgement.verdict, Verdict::fail);
  EXPECT_NEAR(std::exp(near->judgement.middle), 0.7, 0.05);
}

}  // namespace
}  // namespace tutti::harness::accept
