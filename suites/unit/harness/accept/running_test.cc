// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/running.h"

#include <cmath>

#include <gtest/gtest.h>

#include "harness/accept/pretend.h"

namespace tutti::harness::accept {
namespace {

const std::vector<Test> kOneWay{{.measure = Measure::bandwidth, .bytes = 8}};
const std::vector<Group> kPairs{{0, 1}, {2, 3}, {4, 5}};

/// A play of three pairs, whose speeds are these shares of a speed.
std::vector<std::vector<Outcome>> speeds(std::vector<double> shares) {
  std::vector<std::vector<Outcome>> outcomes;
  for (const double share : shares) outcomes.push_back({{.log_speed = 10 + std::log(share)}});
  return outcomes;
}

class AcceptRunning : public ::testing::Test {
 protected:
  PretendedCrew crew_{{.nodes = 6, .leaf_size = 6, .noise = {}, .faults = {}}};
  Running running_{crew_, 0.05};
};

TEST_F(AcceptRunning, ComparesWithThoseAlikeInThePlayOrElseWithAllSoFar) {
  const auto ratios = running_.add(kPairs, kOneWay, speeds({1, 0.9, 1}));
  EXPECT_NEAR(*ratios[1].front(), std::log(0.9), 1e-12);
  EXPECT_TRUE(running_.is_slow(*ratios[1].front()));
  EXPECT_FALSE(running_.is_slow(*ratios[0].front()));
  EXPECT_FALSE(running_.add({{0, 1}}, kOneWay, speeds({0.8})).front().front().has_value()) << "too few so far";
  static_cast<void>(running_.add(kPairs, kOneWay, speeds({1, 1, 1})));
  const auto later = running_.add({{0, 1}}, kOneWay, speeds({0.8}));
  EXPECT_NEAR(*later.front().front(), std::log(0.8), 1e-12) << "five of eight have 1";
  const auto other = running_.add({{0, 1}}, {{.measure = Measure::bandwidth, .bytes = 16}}, speeds({0.8}));
  EXPECT_FALSE(other.front().front().has_value()) << "nothing of the size was played before";
}

TEST_F(AcceptRunning, NamesTheNodeThatIsMostlySlow) {
  const std::vector<std::vector<Group>> rounds{
      {{0, 1}, {2, 3}, {4, 5}}, {{0, 2}, {1, 4}, {3, 5}}, {{0, 3}, {1, 5}, {2, 4}}, {{0, 4}, {1, 2}, {3, 5}}};
  for (const auto& pairs : rounds) {
    EXPECT_EQ(running_.news(), "");
    static_cast<void>(running_.add(pairs, kOneWay, speeds({0.7, 1, 1})));
  }
  EXPECT_EQ(running_.news(), "; node1 sends slowly in 4 of 4 tests so far (no verdict)");
}

TEST_F(AcceptRunning, NamesAPairThatFailedAndGoesOn) {
  auto outcomes = speeds({1, 1, 1});
  outcomes[2].front() = {.ending = Ending::hung};
  static_cast<void>(running_.add(kPairs, kOneWay, outcomes));
  EXPECT_EQ(running_.news(), "; node5 - node6 failed, goes on");
  outcomes[0].front() = {.ending = Ending::failed};
  static_cast<void>(running_.add(kPairs, kOneWay, outcomes));
  EXPECT_EQ(running_.news(), "; node1 - node2 failed, goes on (1 more)");
}

}  // namespace
}  // namespace tutti::harness::accept
