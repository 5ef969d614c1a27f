// SPDX-License-Identifier: Apache-2.0
#include "harness/simulate/symmetry.h"

#include <string_view>

#include <gtest/gtest.h>

#include "harness/simulate/predictor.h"
#include "harness/simulate/walk.h"
#include "impl/algorithms/algorithm.h"

namespace tutti::harness::simulate {
namespace {

Machine nodes_of(int ranks) {
  Machine machine = example_machine();
  machine.ranks_per_node = ranks;
  return machine;
}

int period(Collective collective, std::string_view name, int ranks, const Machine& machine) {
  Problem problem{.collective = collective, .ranks = ranks};
  if (ranks > machine.ranks_per_node) problem.ranks_per_host = machine.ranks_per_node;
  return symmetry_of(schedule_of(*find_algorithm(collective, name).value(), problem), machine).period;
}

TEST(Period, IsARanksOrANodes) {
  EXPECT_EQ(period(Collective::all_reduce, "ring", 12, nodes_of(1)), 1);
  EXPECT_EQ(period(Collective::all_reduce, "ring", 12, nodes_of(4)), 4);
  EXPECT_EQ(period(Collective::all_reduce, "ring", 12, nodes_of(12)), 1);
  EXPECT_EQ(period(Collective::all_reduce, "two_shot", 12, nodes_of(12)), 1);
  EXPECT_EQ(period(Collective::all_reduce, "two_level", 12, nodes_of(4)), 4);
}

TEST(Period, IsNoneOfTreesOfExchangesByBitsAndOfReflections) {
  EXPECT_EQ(period(Collective::broadcast, "knomial", 12, nodes_of(1)), 0);
  EXPECT_EQ(period(Collective::all_reduce, "recursive_doubling", 16, nodes_of(1)), 0);
  EXPECT_EQ(period(Collective::all_to_all, "pairwise", 12, nodes_of(4)), 0);
}

/// Whatever is found, the few ranks take as long as all of them do.
TEST(Period, OfEveryAlgorithmGivesTheTimesOfAllRanks) {
  int found = 0;
  for (const Algorithm* algorithm : all_algorithms()) {
    for (const int node : {1, 2, 4}) {
      const Machine machine = nodes_of(node);
      for (int ranks = 2; ranks <= 24; ++ranks) {
        Problem problem{.collective = algorithm->collective, .ranks = ranks};
        if (ranks > node && ranks % node != 0) continue;
        if (ranks > node) problem.ranks_per_host = node;
        const Schedule schedule = schedule_of(*algorithm, problem);
        const int period = symmetry_of(schedule, machine).period;
        if (period == 0) continue;
        const auto all = walk(schedule, 10'000, machine);
        const auto some = walk(schedule, 10'000, machine, {.period = period});
        ASSERT_EQ(all.is_ok(), some.is_ok()) << algorithm->name;
        if (!all.is_ok()) continue;
        ++found;
        for (int rank = 0; rank < ranks; ++rank) {
          ASSERT_EQ(some.value().finish[static_cast<std::size_t>(rank % period)],
                    all.value().finish[static_cast<std::size_t>(rank)])
              << to_string(algorithm->collective) << " " << algorithm->name << " P=" << ranks << " node " << node;
        }
      }
    }
  }
  EXPECT_GT(found, 500);
}

/// The same of a node that has several caches.
TEST(Period, IsACachesWhereANodeHasSeveral) {
  Machine machine = nodes_of(24);
  machine.ranks_per_cache = 4;
  machine.model.look = 10;
  machine.model.cache = {.flag = 20, .look = 5, .read = SizeTable{{0, 20}, {1000, 40}}};
  int found = 0;
  for (const Algorithm* algorithm : all_algorithms()) {
    for (const int ranks : {4, 8, 10, 20, 24}) {
      const Schedule schedule = schedule_of(
          *algorithm,
          {.collective = algorithm->collective, .ranks = ranks, .ranks_per_cache = machine.ranks_per_cache});
      const int period = symmetry_of(schedule, machine).period;
      if (period == 0) continue;
      ++found;
      EXPECT_EQ(period, ranks == 4 ? 1 : 4) << algorithm->name;
      const auto all = walk(schedule, 10'000, machine).value();
      const auto some = walk(schedule, 10'000, machine, {.period = period}).value();
      for (int rank = 0; rank < ranks; ++rank) {
        ASSERT_EQ(some.finish[static_cast<std::size_t>(rank % period)], all.finish[static_cast<std::size_t>(rank)])
            << to_string(algorithm->collective) << " " << algorithm->name << " P=" << ranks;
      }
    }
  }
  EXPECT_GT(found, 30);
}

TEST(Predictor, WalksFewRanksOfManyWhereItCan) {
  const auto ring = Predictor::make(*find_algorithm(Collective::all_reduce, "ring").value(),
                                    {.collective = Collective::all_reduce, .ranks = 4096}, example_machine());
  ASSERT_TRUE(ring.is_ok());
  EXPECT_EQ(ring.value().walked(), 8);
  EXPECT_GT(ring.value().at(1 << 20).value().ns, ring.value().at(8).value().ns);
}

TEST(Predictor, RefusesWhatIsTooLong) {
  const auto pairwise = Predictor::make(*find_algorithm(Collective::scan, "chain").value(),
                                        {.collective = Collective::scan, .ranks = 64}, nodes_of(1), 50);
  EXPECT_EQ(pairwise.status().code(), Code::unavailable);
}

TEST(NearestRanks, FillNodes) {
  const Machine machine = nodes_of(8);
  EXPECT_EQ(nearest_ranks(5, machine), 5);
  EXPECT_EQ(nearest_ranks(11, machine), 8);
  EXPECT_EQ(nearest_ranks(12, machine), 16);
}

}  // namespace
}  // namespace tutti::harness::simulate
