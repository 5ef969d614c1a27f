// SPDX-License-Identifier: Apache-2.0
// Schedules of two levels hold on up to 8 hosts of up to 8 ranks.
#include <gmock/gmock.h>

#include "impl/algorithms/algorithm.h"
#include "impl/prove/prove.h"

namespace tutti {
namespace {

using testing::HasSubstr;

std::vector<const Algorithm*> two_level_ones() {
  std::vector<const Algorithm*> found;
  for (const Algorithm* const algorithm : all_algorithms()) {
    if (algorithm->name == "two_level") found.push_back(algorithm);
  }
  return found;
}

Problem problem_of(Collective collective, int hosts, int per_host, int root = 0) {
  return {.collective = collective, .ranks = hosts * per_host, .root = root, .ranks_per_host = per_host};
}

TEST(TwoLevel, HoldsOnUpToEightHostsOfEightRanks) {
  ASSERT_EQ(two_level_ones().size(), 5U);
  for (const Algorithm* const algorithm : two_level_ones()) {
    for (int hosts = 1; hosts <= 8; ++hosts) {
      for (int per_host = 1; per_host <= 8; ++per_host) {
        const Problem problem = problem_of(algorithm->collective, hosts, per_host);
        const auto proof = prove_schedule(schedule_of(*algorithm, problem));
        EXPECT_TRUE(proof.is_ok()) << hosts << " hosts of " << per_host << ": " << proof.status().message();
        if (!proof.is_ok()) return;
        EXPECT_TRUE(!is_reducing(algorithm->collective) || proof.value().labels.same_bits);
      }
    }
  }
}

TEST(TwoLevel, BroadcastHoldsFromEveryRoot) {
  const Algorithm& broadcast = *find_algorithm(Collective::broadcast, "two_level").value();
  for (const auto& [hosts, per_host] : {std::pair{3, 3}, {2, 5}, {5, 2}, {6, 1}, {1, 4}}) {
    for (int root = 0; root < hosts * per_host; ++root) {
      const auto proof =
          prove_schedule(schedule_of(broadcast, problem_of(Collective::broadcast, hosts, per_host, root)));
      EXPECT_TRUE(proof.is_ok()) << proof.status().message();
    }
  }
}

/// Between hosts there are channels and flags alone.
TEST(TwoLevel, TouchesNoMemoryOfAnotherHost) {
  constexpr int kHosts = 3, kPerHost = 4;
  for (const Algorithm* const algorithm : two_level_ones()) {
    const Schedule schedule = schedule_of(*algorithm, problem_of(algorithm->collective, kHosts, kPerHost));
    for (int rank = 0; rank < kHosts * kPerHost; ++rank) {
      for (int index = 0; index < schedule.step_count(rank); ++index) {
        const Step step = schedule.step(rank, index);
        const auto expect_here = [&](const RankSet& set) {
          for (int i = 0; i < set.n; ++i) EXPECT_EQ(set.at(i, kHosts * kPerHost) / kPerHost, rank / kPerHost);
        };
        for (const auto* const list : {&step.destinations, &step.sources}) {
          for (const Operand& operand : *list) {
            if (operand.space != Space::channel) expect_here(operand.ranks);
          }
        }
        if (step.verb == Verb::signal && !(step.read.is_empty() && step.write.is_empty())) expect_here(step.ranks);
      }
    }
  }
}

TEST(TwoLevel, OnOneHostItHasNoChannels) {
  for (const Algorithm* const algorithm : two_level_ones()) {
    const Schedule schedule = schedule_of(*algorithm, {.collective = algorithm->collective, .ranks = 5});
    EXPECT_EQ(schedule.shape.largest_message, 0) << schedule.problem.ranks;
  }
}

TEST(TwoLevel, HostsOfUnequalRanksAreRefused) {
  const Algorithm& algorithm = *find_algorithm(Collective::all_reduce, "two_level").value();
  Schedule schedule = schedule_of(algorithm, {.collective = Collective::all_reduce, .ranks = 6, .ranks_per_host = 3});
  schedule.problem.ranks_per_host = 4;
  const auto bound = bind(schedule, {.count = 6, .op = Op::sum});
  ASSERT_FALSE(bound.is_ok());
  EXPECT_THAT(bound.status().message(), HasSubstr("4 ranks per host is out of range: a divisor of 6, or 0"));
}

/// A flag too few is found: each side of it would use memory of a rank that has not come, or has gone on.
TEST(TwoLevel, WithoutAFlagItIsRefuted) {
  for (const Algorithm* const algorithm : two_level_ones()) {
    const Problem problem = problem_of(algorithm->collective, 2, 3);
    const Schedule whole = schedule_of(*algorithm, problem);
    for (int left_out = 0; left_out < whole.step_count(0); ++left_out) {
      if (whole.step(0, left_out).verb == Verb::move || whole.step(0, left_out).ranks == only(0)) continue;
      Schedule less = whole;
      less.step_count = [&](int rank) { return whole.step_count(rank) - (rank == 0 ? 1 : 0); };
      less.step = [&](int rank, int index) {
        return whole.step(rank, index + (rank == 0 && index >= left_out ? 1 : 0));
      };
      less.cost = [&](int rank) {
        Cost cost = whole.cost(rank);
        cost.steps -= rank == 0 ? 1 : 0;
        return cost;
      };
      EXPECT_FALSE(prove_schedule(less).is_ok()) << algorithm->summary << ": step " << left_out;
    }
  }
}

}  // namespace
}  // namespace tutti
