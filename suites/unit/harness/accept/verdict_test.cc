// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/verdict.h"

#include <cmath>

#include <gtest/gtest.h>

namespace tutti::harness::accept {
namespace {

/// A visit of 12 repeats around `share`, 0.1 for 10 % slower, half a percent wide on each side.
std::vector<double> visit(double share) {
  std::vector<double> repeats;
  for (int i = 0; i < 12; ++i) repeats.push_back(std::log1p(-share) + 0.005 * (i - 5.5) / 5.5);
  return repeats;
}

Verdict verdict_of(const std::vector<std::vector<double>>& visits) { return judge(visits, {}).verdict; }

TEST(AcceptVerdict, FailsFromTwoSlowVisitsOnAndNotFromOne) {
  EXPECT_EQ(verdict_of({visit(0.10)}), Verdict::undecided);
  EXPECT_EQ(verdict_of({visit(0.10), {}}), Verdict::undecided) << "an empty visit is none";
  const Judgement twice = judge({visit(0.10), visit(0.10)}, {});
  EXPECT_EQ(twice.verdict, Verdict::fail);
  EXPECT_FALSE(twice.is_fast);
  EXPECT_NEAR(twice.middle, std::log(0.9), 1e-9);
  ASSERT_TRUE(twice.low && twice.high);
  EXPECT_TRUE(*twice.low < twice.middle && twice.middle < *twice.high && *twice.high < std::log(0.95));
}

TEST(AcceptVerdict, PassesWhatIsFarFromTheMargin) {
  EXPECT_EQ(verdict_of({visit(0.00)}), Verdict::pass);
  EXPECT_EQ(verdict_of({visit(0.04), visit(0.04)}), Verdict::pass) << "its interval is above the margin";
  EXPECT_EQ(verdict_of({visit(0.05), visit(0.05)}), Verdict::undecided) << "its interval holds the margin";
  EXPECT_EQ(verdict_of({visit(0.0515), visit(0.0515)}), Verdict::undecided) << "its medians are below the margin";
  EXPECT_EQ(verdict_of({visit(0.07), visit(0.07)}), Verdict::fail);
  EXPECT_EQ(judge({visit(0.07), visit(0.07)}, {.margin = 0.10}).verdict, Verdict::pass);
}

TEST(AcceptVerdict, SlowInSomeVisitsIsASuspect) {
  EXPECT_EQ(verdict_of({visit(0.20), visit(0.00), visit(0.20), visit(0.00)}), Verdict::suspect);
  EXPECT_EQ(verdict_of({visit(0.20), visit(0.20), visit(0.20), visit(0.045)}), Verdict::fail);
  EXPECT_NE(verdict_of({visit(0.20), visit(0.20), visit(0.00), visit(0.04)}), Verdict::fail);
}

TEST(AcceptVerdict, TooFastIsAFaultFromTwoVisitsOn) {
  const Judgement fast = judge({visit(-0.25), visit(-0.25)}, {});
  EXPECT_EQ(fast.verdict, Verdict::fail);
  EXPECT_TRUE(fast.is_fast);
  EXPECT_EQ(verdict_of({visit(-0.25)}), Verdict::undecided);
  EXPECT_EQ(slow_part({.out = fast, .in = fast}, {}), Part::none);
}

TEST(AcceptVerdict, WithoutRepeatsItIsUntestedAndFewDecideNothing) {
  EXPECT_EQ(verdict_of({}), Verdict::untested);
  EXPECT_EQ(verdict_of({{}, {}}), Verdict::untested);
  EXPECT_EQ(verdict_of({{-0.3}, {-0.3}}), Verdict::undecided) << "two repeats have no interval";
}

TEST(AcceptVerdict, ThePartFollowsTheDirections) {
  const Judgement slow = judge({visit(0.10), visit(0.10)}, {});
  const Judgement well = judge({visit(0.00)}, {});
  const Judgement close = judge({visit(0.05), visit(0.05)}, {});
  EXPECT_EQ(slow_part({.out = slow, .in = well}, {}), Part::nic_out);
  EXPECT_EQ(slow_part({.out = well, .in = slow}, {}), Part::nic_in);
  EXPECT_EQ(slow_part({.out = slow, .in = close}, {}), Part::nic);
  EXPECT_EQ(slow_part({.out = slow, .in = slow, .is_slow_alone = true}, {}), Part::node);
  EXPECT_EQ(slow_part({.out = close, .in = close, .is_slow_alone = true}, {}), Part::none);
  EXPECT_EQ(to_string(Part::nic_out), "nic-out");
}

}  // namespace
}  // namespace tutti::harness::accept
