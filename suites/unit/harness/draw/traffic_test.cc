// SPDX-License-Identifier: Apache-2.0
#include "harness/draw/traffic.h"

#include <numeric>

#include <gtest/gtest.h>

#include "harness/draw/overview.h"
#include "impl/algorithms/algorithm.h"

namespace tutti::harness::draw {
namespace {

Traffic traffic_for(Collective collective, const char* name, int ranks) {
  return traffic_of(schedule_of(*find_algorithm(collective, name).value(), {.collective = collective, .ranks = ranks}))
      .value();
}

double sum_of(const std::vector<double>& numbers) { return std::accumulate(numbers.begin(), numbers.end(), 0.0); }

TEST(Traffic, IsWhatTheCostFormulasSay) {
  for (const Algorithm* algorithm : all_algorithms()) {
    if (!has_data(algorithm->collective)) continue;
    constexpr int kRanks = 24;
    const Problem problem{.collective = algorithm->collective, .ranks = kRanks};
    double wanted = 0;
    for (int rank = 0; rank < kRanks; ++rank) wanted += static_cast<double>(algorithm->cost(problem, rank).units);
    const auto traffic = traffic_of(schedule_of(*algorithm, problem));
    ASSERT_TRUE(traffic.is_ok()) << traffic.status().message();
    EXPECT_EQ(traffic.value().units, wanted) << to_string(algorithm->collective) << " " << algorithm->name;
  }
}

TEST(Traffic, OfHalvingGoesFarThenNearThenFar) {
  const Traffic traffic = traffic_for(Collective::all_reduce, "halving", 64);
  ASSERT_EQ(traffic.bins, 12);
  for (std::size_t round = 0; round < 12; ++round) {
    const std::size_t distance = round < 6 ? 5 - round : round - 6;
    for (std::size_t other = 0; other < traffic.by_distance.size(); ++other)
      EXPECT_EQ(traffic.by_distance[other][round] > 0, other == distance) << round << " " << other;
  }
}

TEST(Traffic, OfALongRingIsCountedOnASample) {
  const Traffic traffic = traffic_for(Collective::all_reduce, "ring", 4096);
  EXPECT_EQ(traffic.followed, kMostTiles);
  EXPECT_EQ(traffic.bins, kMostBins);
  EXPECT_EQ(traffic.rounds, 8190);
  for (const double units : traffic.by_distance.front()) EXPECT_NEAR(units, kMostTiles, 0.1);
  for (std::size_t row = 0; row < traffic.map.size(); ++row) EXPECT_EQ(traffic.map[row][row], sum_of(traffic.map[row]));
  EXPECT_NE(overview_text(traffic, "ring", "idea").find("64 of the 4096 ranks"), std::string::npos);
}

TEST(Traffic, OfASampleHasTheRoot) {
  const Traffic traffic = traffic_for(Collective::gather, "direct", 4096);
  EXPECT_GT(traffic.units, 0);
}

}  // namespace
}  // namespace tutti::harness::draw
