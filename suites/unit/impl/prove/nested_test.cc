// SPDX-License-Identifier: Apache-2.0
// Schedules of two levels within a host hold for caches of any width, and little crosses from one cache to another.
#include <gtest/gtest.h>

#include "impl/algorithms/algorithm.h"
#include "impl/prove/prove.h"

namespace tutti {
namespace {

std::vector<const Algorithm*> nested_ones() {
  std::vector<const Algorithm*> found;
  for (const Algorithm* const algorithm : all_algorithms()) {
    if (algorithm->is_by_caches) found.push_back(algorithm);
  }
  return found;
}

TEST(Nested, HoldsForCachesOfEveryWidth) {
  ASSERT_EQ(nested_ones().size(), 7U);
  for (const Algorithm* const algorithm : nested_ones()) {
    for (const int ranks : {1, 2, 3, 5, 6, 8, 9, 12, 16}) {
      for (int per_cache = 0; per_cache <= ranks + 1; ++per_cache) {
        const Problem problem{.collective = algorithm->collective, .ranks = ranks, .ranks_per_cache = per_cache};
        const auto proof = prove_schedule(schedule_of(*algorithm, problem));
        ASSERT_TRUE(proof.is_ok()) << per_cache << " ranks a cache: " << proof.status().message();
        EXPECT_TRUE(!is_reducing(algorithm->collective) || proof.value().labels.same_bits);
      }
    }
  }
}

TEST(Nested, HoldsFromEveryRoot) {
  for (const Collective collective : {Collective::broadcast, Collective::reduce}) {
    const Algorithm& nested = *find_algorithm(collective, "nested").value();
    for (const auto& [ranks, per_cache] : {std::pair{9, 3}, {10, 4}, {7, 2}, {5, 5}, {4, 1}, {13, 6}}) {
      for (int root = 0; root < ranks; ++root) {
        const Problem problem{.collective = collective, .ranks = ranks, .root = root, .ranks_per_cache = per_cache};
        const auto proof = prove_schedule(schedule_of(nested, problem));
        ASSERT_TRUE(proof.is_ok()) << proof.status().message();
      }
    }
  }
}

/// Reductions keep the order of ranks where one rank of a cache adds up what its cache has.
TEST(Nested, KeepsTheOrderOfRanks) {
  for (const auto& [collective, name] : {std::pair{Collective::reduce, "nested"},
                                         {Collective::all_reduce, "nested_one_shot"},
                                         {Collective::all_reduce, "nested_two_shot"},
                                         {Collective::reduce_scatter, "nested"}}) {
    const Problem problem{.collective = collective, .ranks = 8, .ranks_per_cache = 4};
    const auto proof = prove_schedule(schedule_of(*find_algorithm(collective, name).value(), problem));
    ASSERT_TRUE(proof.is_ok()) << proof.status().message();
    EXPECT_TRUE(proof.value().labels.keeps_order) << name;
  }
}

/// Units that ranks read or store in memory of ranks of other caches, all ranks together.
std::int64_t crossing(const Schedule& schedule, int per_cache) {
  const int ranks = schedule.problem.ranks;
  std::int64_t sum = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    for (int index = 0; index < schedule.step_count(rank); ++index) {
      const Step step = schedule.step(rank, index);
      if (step.verb != Verb::move) continue;
      for (const auto* const list : {&step.destinations, &step.sources}) {
        for (const Operand& operand : *list) {
          for (int i = 0; i < operand.ranks.n; ++i) {
            if (operand.ranks.at(i, ranks) / per_cache != rank / per_cache) sum += length_of(step);
          }
        }
      }
    }
  }
  return sum;
}

/// `blocks` of the schedule's blocks.
void expect_crossing(Collective collective, std::string_view name, std::int64_t blocks) {
  constexpr int kRanks = 12, kPerCache = 4;
  const Problem problem{.collective = collective, .ranks = kRanks, .ranks_per_cache = kPerCache};
  const Schedule schedule = schedule_of(*find_algorithm(collective, name).value(), problem);
  EXPECT_EQ(crossing(schedule, kPerCache), blocks * schedule.shape.units_per_block)
      << to_string(collective) << " " << name;
}

TEST(Nested, CrossesBetweenCachesAsOftenAsThereAreOtherCaches) {
  expect_crossing(Collective::broadcast, "nested", 2);
  expect_crossing(Collective::broadcast, "direct", 8);
  expect_crossing(Collective::reduce, "nested", 2);
  expect_crossing(Collective::reduce, "one_shot", 8);
  expect_crossing(Collective::all_reduce, "nested_one_shot", 3 * 2);
  expect_crossing(Collective::all_reduce, "one_shot", 12 * 8);
  expect_crossing(Collective::all_reduce, "nested_two_shot", 2 * 2);
  expect_crossing(Collective::all_reduce, "two_shot", 2 * 8);
  expect_crossing(Collective::all_gather, "nested", 12 * 2);
  expect_crossing(Collective::all_gather, "direct", 12 * 8);
  expect_crossing(Collective::reduce_scatter, "nested", 12 * 2);
  expect_crossing(Collective::reduce_scatter, "direct", 12 * 8);
}

}  // namespace
}  // namespace tutti
