// SPDX-License-Identifier: Apache-2.0
// How often an acceptance is right on clusters that are drawn. The night has larger tables.
#include "suites/accept/trials.h"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tutti::suites {
namespace {

TEST(AcceptTrials, AThousandHealthyClustersHaveAtMostFiveAlarms) {
  int alarms = 0;
  std::string example;
  for (const int nodes : {8, 16}) {
    const TrialCounts counts = try_clusters({.kind = "none", .nodes = nodes, .leaf_size = 4}, 500, 90'000);
    alarms += counts.alarms;
    if (example.empty()) example = counts.example;
  }
  EXPECT_LE(alarms, 5) << example;
}

class AcceptTrialsOf : public ::testing::TestWithParam<std::string_view> {};

TEST_P(AcceptTrialsOf, FindTheFaultAndItsClass) {
  TrialCell cell{.kind = GetParam()};
  if (cell.kind == "too-fast") cell.share = 0.2;  // 10 % is the limit of what is too fast
  const TrialCounts counts = try_clusters(cell, 50, 70'000);
  EXPECT_GE(counts.f1(), 0.95) << counts.example;
  EXPECT_GE(counts.class_share(), 0.95) << counts.example;
}

INSTANTIATE_TEST_SUITE_P(Each, AcceptTrialsOf, ::testing::ValuesIn(trial_kinds()), [](const auto& one) {
  std::string name(one.param);
  std::erase(name, '-');
  return name;
});

TEST(AcceptTrials, OfPlainFaultsFourOfFiveTakeNoMoreRoundsThanForecast) {
  for (const std::string_view kind : {"node", "nic-out", "link", "link-dir"}) {
    for (const int nodes : {4, 6, 16}) {
      const TrialCounts counts = try_clusters({.kind = kind, .nodes = nodes, .leaf_size = 8, .share = 0.3}, 50, 60'000);
      EXPECT_GE(counts.within_forecast, 40) << kind << " on " << nodes << " nodes";
    }
  }
}

class AcceptTrialsOfGenerations : public ::testing::TestWithParam<double> {};

TEST_P(AcceptTrialsOfGenerations, AreASplitAndNobodyIsToBlame) {
  for (const std::string_view kind : {"older-25", "older-50", "older-75"}) {
    for (const int nodes : {16, 64}) {
      const TrialCounts counts =
          try_clusters({.kind = kind, .nodes = nodes, .leaf_size = nodes / 4, .share = GetParam()}, 30, 80'000);
      EXPECT_EQ(counts.alarms, 0) << kind << " of " << nodes << " nodes: " << counts.example;
      EXPECT_GE(counts.splits, GetParam() < 0.1 ? 24 : 27) << kind << " of " << nodes << " nodes: " << counts.example;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shares, AcceptTrialsOfGenerations, ::testing::Values(0.08, 0.12, 0.18, 0.3),
                         [](const auto& one) { return fmt::format("By{:.0f}Percent", 100 * one.param); });

TEST(AcceptTrials, TwoOfSixteenThatAreSlowAlikeAreFaults) {
  const TrialCounts counts = try_clusters({.kind = "older-10", .nodes = 16, .share = 0.12}, 20, 80'000);
  EXPECT_EQ(counts.splits, 0) << counts.example;
  EXPECT_EQ(counts.false_parts, 2 * counts.clusters) << counts.example;
}

// Most rounds of near pairs lie in a spell of the whole fleet: the level of these pairs is then wrong.
TEST(AcceptTrials, AWrongLevelBlamesNobody) {
  const TrialCell cell{.kind = "uplink",
                       .nodes = 64,
                       .leaf_size = 16,
                       .share = 0.5,
                       .noise = {.node_spells = 0.02, .fleet_spells = 0.2}};
  const TrialCounts counts = try_clusters(cell, 4, 500'030);
  EXPECT_EQ(counts.false_parts, 0) << counts.example;
}

TEST(AcceptTrials, NoiseOfANodeIsNoFault) {
  TrialCell cell{.kind = "none"};
  cell.noise.measurement = 0.015;
  cell.are_multiples_drawn = true;
  const TrialCounts counts = try_clusters(cell, 300, 50'000);
  EXPECT_LE(counts.alarms, 1) << counts.example;
}

}  // namespace
}  // namespace tutti::suites
