// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/cells.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "harness/accept/first_pass.h"
#include "harness/accept/screen.h"

namespace tutti::harness::accept {
namespace {

TEST(AcceptMedians, LeaveOutWhatIsNoNumber) {
  std::vector<double> odd{3, kNothing, 1, 2}, even{4, 1, kNothing, 3, 2}, none{kNothing};
  EXPECT_EQ(median_of_numbers(odd), 2);
  EXPECT_EQ(median_of_numbers(even), 2.5);
  EXPECT_EQ(high_median_of_numbers(even), 3);
  EXPECT_EQ(quantile_of_numbers(even, 0.75), 3);
  EXPECT_EQ(quantile_of_numbers(even, 1), 4);
  EXPECT_TRUE(std::isnan(median_of_numbers(none)));
  EXPECT_NEAR(robust_deviation({1, 2, 3, 4, 5}), 1.4826, 1e-12);
}

/// Every pair of `nodes` once in each direction, `of(sender, receiver, round)` is the logarithm of its speed.
template <class Of>
std::vector<Sample> sweep(const std::vector<int>& leaves, int& rounds, const Of& of) {
  std::vector<int> nodes;
  for (int node = 0; node < std::ssize(leaves); ++node) nodes.push_back(node);
  std::vector<Sample> samples;
  rounds = 0;
  for (const Round& round : rounds_of_sweep(nodes, leaves, false)) {
    for (const auto& [one, other] : round) {
      samples.push_back({.round = rounds, .sender = one, .receiver = other, .log_speed = of(one, other, rounds)});
      samples.push_back(
          {.round = rounds + 1, .sender = other, .receiver = one, .log_speed = of(other, one, rounds + 1)});
    }
    rounds += 2;
  }
  return samples;
}

std::vector<int> leaves_of_four(int nodes) {
  std::vector<int> leaves;
  for (int node = 0; node < nodes; ++node) leaves.push_back(node / 4);
  return leaves;
}

TEST(AcceptFit, TakesOutWhatARoundHasInCommon) {
  const std::vector<int> leaves = leaves_of_four(16);
  int rounds = 0;
  const auto samples = sweep(leaves, rounds, [](int sender, int, int round) {
    return 20 + (sender == 3 ? -0.2 : 0.0) + (round % 5 == 0 ? -0.5 : 0.0);  // a slow sender, and slow rounds
  });
  const Fit fit = fit_of(samples, leaves, rounds, 1);
  for (int sender = 0; sender < 16; ++sender) {
    for (int receiver = 0; receiver < 16; ++receiver) {
      if (sender == receiver) continue;
      EXPECT_NEAR(fit.cells(sender, receiver), sender == 3 ? 19.8 : 20, 1e-9);
    }
  }
}

TEST(AcceptNoise, AWayThatIsAlwaysSlowerIsNone) {
  const std::vector<int> leaves{0, 0, 0, 0};
  std::vector<Sample> samples;
  for (int number = 0; number < 8; ++number) {
    int rounds = 0;
    const double noise = number % 2 == 0 ? 0.01 : -0.01;
    const auto of_sweep = sweep(leaves, rounds, [&](int sender, int receiver, int) {
      return (sender == 1 ? -0.5 : 0) + (sender < receiver ? noise : -noise);
    });
    samples.insert(samples.end(), of_sweep.begin(), of_sweep.end());
  }
  EXPECT_NEAR(noise_in(samples, 4).fleet, 1.4826 * std::sqrt(2.0) * 0.01 * std::sqrt(8.0 / 7), 1e-6);
}

TEST(AcceptScreen, CoarsePartsComeFirst) {
  const std::vector<int> leaves = leaves_of_four(16);
  const Limits limits;
  const auto suspects = [&](auto&& loss) {
    int rounds = 0;
    const auto samples = sweep(leaves, rounds, [&](int sender, int receiver, int) {
      const bool is_far = leaves[at(sender)] != leaves[at(receiver)];
      return 20 - (is_far ? 0.1 : 0) + loss(sender, receiver);
    });
    return suspects_in(fit_of(samples, leaves, rounds, 1).cells, leaves, 16, limits);
  };
  const auto none = suspects([](int, int) { return 0.0; });
  EXPECT_TRUE(none.links.empty());
  EXPECT_NEAR(none.near, 20, 1e-9);
  EXPECT_NEAR(none.far, 19.9, 1e-9);

  const auto node = suspects([](int sender, int receiver) { return sender == 5 || receiver == 5 ? -0.2 : 0.0; });
  EXPECT_TRUE(node.links.empty()) << "what is slow because of a node is no link's fault";
  EXPECT_NEAR(node.nodes[5].out, -0.2, 1e-9);
  EXPECT_NEAR(node.nodes[5].in, -0.2, 1e-9);
  EXPECT_TRUE(node.nodes[4].are_good());

  const auto uplink = suspects(
      [&](int sender, int receiver) { return leaves[at(sender)] == 2 && leaves[at(receiver)] != 2 ? -0.2 : 0.0; });
  EXPECT_NEAR(uplink.uplinks[2].out, -0.2, 1e-9);
  EXPECT_EQ(uplink.uplinks[2].in, 0);
  for (const BothWays& one : uplink.nodes) EXPECT_TRUE(one.are_good());
  EXPECT_TRUE(uplink.links.empty());

  const auto link = suspects([](int sender, int receiver) { return sender == 1 && receiver == 9 ? -0.2 : 0.0; });
  EXPECT_EQ(link.links, (std::vector<Transfer>{{.sender = 1, .receiver = 9}}));
}

TEST(AcceptFirstPass, SamplesTheCircleOfManyNodes) {
  std::vector<int> nodes, leaves;
  for (int node = 0; node < 256; ++node) {
    nodes.push_back(node);
    leaves.push_back(node / 16);
  }
  EXPECT_EQ(rounds_of_sweep(nodes, leaves, false).size(), 70U) << "6 within the leaves, 64 of the circle";
  EXPECT_EQ(rounds_of_sweep(nodes, leaves, true).size(), 255U);
  EXPECT_EQ(sweeps_of(256), 1);
  EXPECT_EQ(sweeps_of(5), 6) << "24 tests of each node and direction";
}

}  // namespace
}  // namespace tutti::harness::accept
