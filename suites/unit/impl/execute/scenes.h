// SPDX-License-Identifier: Apache-2.0
// Operations one after the other on a few ranks, as worlds of the model (model.h) that the explorer walks.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "impl/algorithms/algorithm.h"
#include "impl/transports/hosts.h"
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
  std::vector<int> hosts = {};  ///< [rank]; empty: all on one
};
inline void PrintTo(const Scene& scene, std::ostream* out) { *out << scene.name; }

inline Problem problem_of(const World& world, const Step& step) {
  return {.collective = step.collective,
          .ranks = world.ranks,
          .root = step.root,
          .pairing = {.window = 1},
          .ranks_per_host = world.hosts.empty() ? 0 : Hosts(world.hosts).ranks_per_host()};
}

/// Of a step: what each rank executes, and what is to come of it.
struct Operation {
  Problem problem;
  std::vector<Plan> plans;
  int cells = 0;
  bool synchronises = false;
};

inline Schedule schedule_of(const World& world, const Step& step) {
  const auto algorithm = find_algorithm(step.collective, step.algorithm);
  EXPECT_TRUE(algorithm.is_ok()) << algorithm.status().message();
  return algorithm.is_ok() ? schedule_of(*algorithm.value(), problem_of(world, step)) : Schedule();
}

inline Operation operation_of(const World& world, const Schedule& schedule, const Step& step) {
  Operation made{.problem = schedule.problem,
                 .cells = has_data(step.collective) ? step.cells : 0,
                 .synchronises = schedule.synchronises};
  for (int rank = 0; rank < world.ranks; ++rank) {
    const auto call = bind(
        schedule,
        {.rank = rank,
         .count = made.cells * world.cell_bytes / 4,
         .dtype = Dtype::i32,
         .op = is_reducing(step.collective) ? Op::sum : Op::none,
         .buffers = step.buffers,
         .resources = {.slots = world.slots, .slot_bytes = 64, .scratch_bytes = World::kCells * world.cell_bytes}});
    EXPECT_TRUE(call.is_ok()) << call.status().message();
    if (!call.is_ok()) return made;
    EXPECT_EQ(call.value().segments(), 1);
    made.plans.push_back(call.value().plan(0));
  }
  return made;
}

inline Operation operation_of(const World& world, const Step& step) {
  const Schedule schedule = schedule_of(world, step);
  return testing::Test::HasFailure() ? Operation() : operation_of(world, schedule, step);
}

inline void add(World& world, Operation operation, bool needs_fence) {
  for (const Plan& plan : operation.plans) {
    for (const PlanOperand& operand : plan.operands()) {
      world.shares_outputs |= operand.space == Space::output && !operand.is_mine;
    }
  }
  world.plans.push_back(std::move(operation.plans));
  world.problems.push_back(operation.problem);
  world.counts.push_back(operation.cells);
  world.needs_fence.push_back(needs_fence);
}

/// What all ranks are heard in, without a flag that crosses.
inline constexpr Step kFence{Collective::all_reduce, "recursive_doubling"};

/// Where flags cross and all ranks are waited for, but no operation of the K/2 before waits for them, comes a fence.
inline void add_all(World& world, const std::vector<Step>& steps) {
  const int most = world.fault == Fault::fences_late ? world.generations : world.generations / 2;
  int since_all = 0;
  for (const Step& step : steps) {
    Operation operation = operation_of(world, step);
    if (testing::Test::HasFailure()) return;
    const bool needs_fence =
        operation.synchronises && world.signals_across(operation.plans) && world.fault != Fault::omits_fence;
    if (needs_fence && since_all >= most) add(world, operation_of(world, kFence), false);
    since_all = operation.synchronises ? 0 : since_all + 1;
    add(world, std::move(operation), needs_fence);
  }
}

inline World world_of(const Scene& scene, bool delays_stores, Fault fault = Fault::none) {
  World world;
  world.ranks = scene.ranks;
  world.slots = scene.slots;
  world.delays_stores = delays_stores;
  world.fault = fault;
  world.cell_bytes = scene.cell_bytes;
  world.hosts = scene.hosts;
  add_all(world, scene.steps);
  return world;
}

inline Exploration explore(const Scene& scene, bool delays_stores, Fault fault = Fault::none) {
  const World world = world_of(scene, delays_stores, fault);
  if (testing::Test::HasFailure()) return {};
  return Explorer(world).explore();
}

}  // namespace tutti::model
