// SPDX-License-Identifier: Apache-2.0
#include "impl/algorithms/algorithm.h"

#include <vector>

#include <gtest/gtest.h>

namespace tutti {
namespace {

std::string name_of(const Algorithm& algorithm) {
  return std::string(to_string(algorithm.collective)) + "/" + std::string(algorithm.name);
}

TEST(Algorithms, ThatTakeCountsExposeNothingHaveNoScratchAndNeedTheSameSlotsForAnyLength) {
  int found = 0;
  for (const Algorithm* algorithm : all_algorithms()) {
    if (!algorithm->takes_counts) continue;
    ++found;
    for (const int ranks : {1, 2, 3, 5, 8, 64, 130}) {
      const Problem problem{.collective = algorithm->collective, .ranks = ranks};
      const Shape shape = algorithm->shape(problem);
      EXPECT_EQ(shape.units_per_block, 1) << name_of(*algorithm);
      EXPECT_EQ(shape.scratch_units, 0) << name_of(*algorithm);
      EXPECT_FALSE(shape.exposes_input || shape.exposes_output) << name_of(*algorithm);
      EXPECT_EQ(algorithm->least_slots(problem, 1), algorithm->least_slots(problem, 1 << 20)) << name_of(*algorithm);
    }
  }
  EXPECT_GT(found, 0);
}

TEST(Algorithms, EveryDividedCollectiveHasOneThatTakesCounts) {
  for (const Collective collective : {Collective::gather, Collective::all_gather, Collective::scatter,
                                      Collective::reduce_scatter, Collective::all_to_all}) {
    bool takes_counts = false;
    for (const Algorithm* algorithm : algorithms_of(collective)) takes_counts |= algorithm->takes_counts;
    EXPECT_TRUE(takes_counts) << to_string(collective);
  }
}

TEST(Algorithms, ThatAreByHostsOrCachesSayIt) {
  for (const Algorithm* algorithm : all_algorithms()) {
    const auto steps = [&](int per_host, int per_cache = 0) {
      const Problem problem{
          .collective = algorithm->collective, .ranks = 8, .ranks_per_host = per_host, .ranks_per_cache = per_cache};
      std::vector<Step> all;
      for (int rank = 0; rank < problem.ranks; ++rank) {
        const int count = algorithm->step_count(problem, rank);
        for (int index = 0; index < count; ++index) all.push_back(algorithm->step(problem, rank, index));
      }
      return all;
    };
    EXPECT_EQ(steps(4) != steps(1), algorithm->is_by_hosts) << name_of(*algorithm);
    EXPECT_EQ(steps(0, 2) != steps(0, 4), algorithm->is_by_caches) << name_of(*algorithm);
  }
}

/// The file writes every rank's steps; the library asks it for rank 0's and turns them.
TEST(Algorithms, ThatAreTurnedDoOnEveryRankWhatTheirFilesWriteOfIt) {
  int found = 0;
  for (const Algorithm* algorithm : all_algorithms()) {
    if (algorithm->turning == Turning::none) continue;
    ++found;
    for (int ranks = 1; ranks <= 17; ++ranks) {
      const Problem problem{.collective = algorithm->collective, .ranks = ranks};
      const Schedule schedule = schedule_of(*algorithm, problem);
      for (int rank = 0; rank < ranks; ++rank) {
        ASSERT_EQ(schedule.step_count(rank), algorithm->step_count(problem, rank)) << name_of(*algorithm);
        for (int index = 0; index < schedule.step_count(rank); ++index) {
          EXPECT_TRUE(schedule.step(rank, index) == algorithm->step(problem, rank, index))
              << name_of(*algorithm) << " on " << ranks << " ranks, rank " << rank << " step " << index;
        }
      }
    }
  }
  EXPECT_EQ(found, 9);
}

}  // namespace
}  // namespace tutti
