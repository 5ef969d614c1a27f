// SPDX-License-Identifier: Apache-2.0
// Operations one after the other on a few ranks, as worlds of the model (model.h) that the explorer walks.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "impl/algorithms/algorithm.h"
#include "suites/unit/impl/execute/explorer.h"

namespace tutti::model {

/// One operation of all ranks.
struct Step {
  Collective collective;
  std::string_view algorithm;
  int root = 0;
  int cells = 1;  ///< of a block
  Buffers buffers = Buffers::private_;
};

struct Scene {
  std::string name;
  int ranks;
  int slots;
  std::vector<Step> steps;
  int cell_bytes = 4;
};
inline void PrintTo(const Scene& scene, std::ostream* out) { *out << scene.name; }

inline void add(World& world, const Step& step) {
  const Problem problem{.collective = step.collective, .ranks = world.ranks, .root = step.root};
  const auto algorithm = find_algorithm(step.collective, step.algorithm);
  ASSERT_TRUE(algorithm.is_ok()) << algorithm.status().message();
  const Schedule schedule = schedule_of(*algorithm.value(), problem);
  const bool has_bytes = has_data(step.collective);
  std::vector<Plan>& plans = world.plans.emplace_back();
  for (int rank = 0; rank < world.ranks; ++rank) {
    const auto call = bind(
        schedule,
        {.rank = rank,
         .count = has_bytes ? step.cells * world.cell_bytes / 4 : 0,
         .dtype = Dtype::i32,
         .op = is_reducing(step.collective) ? Op::sum : Op::none,
         .buffers = step.buffers,
         .resources = {.slots = world.slots, .slot_bytes = 64, .scratch_bytes = World::kCells * world.cell_bytes}});
    ASSERT_TRUE(call.is_ok()) << call.status().message();
    ASSERT_EQ(call.value().segments(), 1);
    plans.push_back(call.value().plan(0));
    for (const PlanOperand& operand : plans.back().operands()) {
      world.shares_outputs |= operand.space == Space::output && !operand.is_mine;
    }
  }
  world.problems.push_back(problem);
  world.counts.push_back(has_bytes ? step.cells : 0);
}

inline World world_of(const Scene& scene, bool delays_stores, Fault fault = Fault::none) {
  World world;
  world.ranks = scene.ranks;
  world.slots = scene.slots;
  world.delays_stores = delays_stores;
  world.fault = fault;
  world.cell_bytes = scene.cell_bytes;
  for (const Step& step : scene.steps) add(world, step);
  return world;
}

inline Exploration explore(const Scene& scene, bool delays_stores, Fault fault = Fault::none) {
  const World world = world_of(scene, delays_stores, fault);
  if (testing::Test::HasFatalFailure()) return {};
  return Explorer(world).explore();
}

}  // namespace tutti::model
