// SPDX-License-Identifier: Apache-2.0
#include "harness/simulate/runs.h"

#include <string_view>

#include <gtest/gtest.h>

#include "harness/simulate/predictor.h"
#include "harness/simulate/symmetry.h"
#include "impl/algorithms/algorithm.h"

namespace tutti::harness::simulate {
namespace {

Schedule all_reduce(std::string_view name, int ranks, int per_host) {
  return schedule_of(*find_algorithm(Collective::all_reduce, name).value(),
                     {.collective = Collective::all_reduce, .ranks = ranks, .ranks_per_host = per_host});
}

TEST(SimulatedRuns, OfARingAreItsTwoTurns) {
  const std::vector<StepRun> runs = runs_of(all_reduce("ring", 100, 0), 1, 10);
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].first, 1);
  EXPECT_EQ(runs[0].length, 98);
  EXPECT_EQ(runs[1].first, 100);
  EXPECT_EQ(runs[1].length, 98);
}

TEST(SimulatedRuns, OfExchangesAreNone) { EXPECT_TRUE(runs_of(all_reduce("halving", 64, 0), 1, 3).empty()); }

TEST(SimulatedRuns, ACutScheduleLacksWhatIsCut) {
  const Schedule ring = all_reduce("ring", 100, 0);
  const std::vector<StepRun> runs = runs_of(ring, 1, 10);
  const Schedule shorter = cut(ring, runs, {5, 7});
  EXPECT_EQ(shorter.step_count(3), ring.step_count(3) - 93 - 91);
  EXPECT_EQ(shorter.step(3, 5), ring.step(3, 5));
  EXPECT_EQ(shorter.step(3, 6), ring.step(3, 99));
  EXPECT_EQ(shorter.step(3, 13), ring.step(3, 106));
  EXPECT_EQ(shorter.step(3, 14), ring.step(3, 198));
}

/// Few steps of each run give the times of all steps.
TEST(SimulatedRuns, TakeAsLongAsAllTheirSteps) {
  for (const Shape shape : {Shape::one_switch, Shape::fat_tree, Shape::dragonfly, Shape::rails}) {
    for (const int rails : {1, 4}) {
      Machine machine = example_machine();
      machine.ranks_per_node = 4;
      machine.rails = rails;
      machine.network = {.shape = shape, .leaf = 2, .taper = 2, .links = 0.5, .hop = 300};
      for (const std::string_view name : {"ring", "two_level"}) {
        const Schedule schedule = all_reduce(name, 1600, 4);
        const Symmetry symmetry = symmetry_of(schedule, machine);
        const std::vector<StepRun> runs = runs_of(schedule, symmetry.alike, 160);
        ASSERT_FALSE(runs.empty()) << name;
        const WalkOptions options{.order = machine.shares() ? Order::time : Order::programs, .period = symmetry.period};
        for (const double bytes : {1000.0, 1e8}) {
          const Prediction all = walk(schedule, bytes, machine, options).value();
          const Prediction few = walk_runs(schedule, runs, bytes, machine, options).value();
          EXPECT_NEAR(few.ns / all.ns, 1, 1e-9)
              << name << " shape " << static_cast<int>(shape) << " rails " << rails << " bytes " << bytes;
          EXPECT_EQ(few.messages, all.messages);
        }
      }
    }
  }
}

TEST(SimulatedRuns, MakeARingOverATreeQuick) {
  Machine machine = example_machine();
  machine.network = {.shape = Shape::fat_tree, .leaf = 32, .taper = 2, .hop = 500};
  const auto predictor = Predictor::make(*find_algorithm(Collective::all_reduce, "ring").value(),
                                         {.collective = Collective::all_reduce, .ranks = 98'304}, machine);
  ASSERT_TRUE(predictor.is_ok()) << predictor.status().message();
  EXPECT_EQ(predictor.value().walked(), 256);
  EXPECT_LT(predictor.value().at(1 << 20).value().steps, 5'000'000U) << "of 50 million";
}

}  // namespace
}  // namespace tutti::harness::simulate
