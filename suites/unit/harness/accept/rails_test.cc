// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/rails.h"

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/accept/pretend.h"
#include "suites/unit/harness/accept/reports.h"

namespace tutti::harness::accept {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<std::string> kTwo{"ib0", "ib1"};

std::string rail_refusal_of(const std::string& text) {
  const auto rails = parse_rails(text);
  return rails.is_ok() ? "" : std::string(rails.status().message());
}

Finding slow_on(int rail, Class what, double share = 0.1) {
  Finding one{.what = what, .first = 4, .judgement = slow(), .tests = 24, .rail = rail};
  one.judgement.middle = std::log1p(-share);
  return one;
}

TEST(Rails, AreInterfacesOrNetworks) {
  const auto rails = parse_rails("ib0,192.0.2.0/24,bond0.7,2001:db8::/64");
  ASSERT_TRUE(rails.is_ok()) << rails.status().message();
  EXPECT_THAT(rails.value(), ElementsAre("ib0", "192.0.2.0/24", "bond0.7", "2001:db8::/64"));
  EXPECT_THAT(rail_refusal_of("192.0.2.7"), HasSubstr("is an address, which one host has"));
  EXPECT_THAT(rail_refusal_of("2001:db8::7"), HasSubstr("is an address, which one host has"));
  EXPECT_THAT(rail_refusal_of("ib0/24"), HasSubstr("did you mean 'ib0'?"));
  EXPECT_THAT(rail_refusal_of("ib0,ib1,ib0"), HasSubstr("'ib0' is there twice"));
  EXPECT_NE(rail_refusal_of(""), "");
  EXPECT_NE(rail_refusal_of("ib0,"), "");
  EXPECT_NE(rail_refusal_of("-x"), "");
}

TEST(Rails, WhatIsSlowOnAllOfThemIsTheNode) {
  std::vector<Finding> parts{slow_on(0, Class::nic_out, 0.3), slow_on(1, Class::nic, 0.1)};
  merge_rails(parts, kTwo);
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].what, Class::node);
  EXPECT_EQ(parts[0].rail, kNoRail);
  EXPECT_EQ(parts[0].tests, 48);
  EXPECT_NEAR(parts[0].judgement.middle, std::log(0.9), 1e-12) << "the least";
  EXPECT_EQ(parts[0].detail, "on both rails (ib0 30.0 %, ib1 10.0 %)");
}

TEST(Rails, WhatIsSlowOnSomeOfThemIsANic) {
  std::vector<Finding> parts{slow_on(0, Class::node), slow_on(2, Class::nic_in)};
  merge_rails(parts, {"ib0", "ib1", "ib2"});
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].what, Class::nic) << "slow alone too, but not on ib1";
  EXPECT_EQ(parts[0].rail, 0);
  EXPECT_EQ(parts[1].what, Class::nic_in);
  std::vector<Finding> open{slow_on(0, Class::nic), slow_on(1, Class::nic)};
  open[1].judgement.verdict = Verdict::undecided;
  merge_rails(open, kTwo);
  EXPECT_EQ(open.size(), 2U) << "one that is not decided";
}

TEST(Rails, WhoIsDeadOrHangsOnAllOfThemIsToldOnce) {
  const Judgement failed{.verdict = Verdict::fail};
  std::vector<Finding> parts;
  for (const int rail : {0, 1}) {
    parts.push_back({.what = Class::dead, .first = 3, .judgement = failed, .rail = rail});
    parts.push_back({.what = Class::hung, .first = 1, .second = 2, .judgement = failed, .rail = rail});
  }
  parts.push_back({.what = Class::hung, .first = 1, .second = 5, .judgement = failed, .rail = 1});
  merge_rails(parts, kTwo);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0].what, Class::dead);
  EXPECT_EQ(parts[0].rail, kNoRail);
  EXPECT_EQ(parts[1].rail + parts[2].rail, 1 + kNoRail) << "one pair hangs on both, one on ib1";
}

TEST(Rails, ATestOfARailMeetsItsFaultsOnly) {
  const Noise still{.measurement = 0, .nodes = 0, .links = 0, .outliers = 0};
  PretendedCrew crew({.nodes = 4,
                      .leaf_size = 4,
                      .noise = still,
                      .faults = {{.trouble = Trouble::nic, .first = 1, .share = 0.2, .rail = 1},
                                 {.trouble = Trouble::absent, .first = 2, .rail = 1}},
                      .rails = kTwo});
  const auto speed = [](Crew& over) { return over.play({{0, 1}}, {{.measure = Measure::bandwidth}})[0][0].log_speed; };
  OnRail first(crew, 0), second(crew, 1);
  EXPECT_NEAR(speed(second) - speed(first), std::log(0.8), 1e-12);
  EXPECT_EQ(speed(crew), speed(first)) << "without a rail it is the first";
  EXPECT_EQ(first.absence_of(2), "");
  EXPECT_EQ(second.absence_of(2), "'ib1' is no interface of node3");
  EXPECT_EQ(crew.absence_of(2), "");
}

TEST(Rails, AFailureOfOneRailLeavesTheOthersInTheReport) {
  AcceptReport report = healthy(8);
  report.rails = {{.name = "ib0", .findings = report.findings}, {.name = "ib1", .findings = report.findings}};
  add(report, slow_on(1, Class::nic_out));
  report.rails[1].findings.nodes[4].verdict = Verdict::fail;
  EXPECT_EQ(blame_on_rail(report, 4, 0), nullptr);
  ASSERT_NE(blame_on_rail(report, 4, 1), nullptr);
  EXPECT_EQ(reason_of(report, 4), "nic-out on ib1");
  EXPECT_TRUE(is_excluded(report, 4));
  report.findings.parts = {
      {.what = Class::dead, .first = 2, .judgement = {.verdict = Verdict::error}, .detail = "no ib1", .rail = 1}};
  EXPECT_EQ(conclusion_of(report), Conclusion::untested);
  EXPECT_FALSE(is_excluded(report, 2)) << "nothing is known of it";
}

}  // namespace
}  // namespace tutti::harness::accept
