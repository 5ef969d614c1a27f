// SPDX-License-Identifier: Apache-2.0
// The protocol between hosts, in every interleaving of two or three ranks and of all messages between them: flags,
// slices and counts, that arrive in order on each link, whenever they like. Each rule that is broken on purpose is
// found.
#include <algorithm>
#include <iostream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "impl/execute/reach.h"
#include "suites/unit/impl/execute/scenes.h"

namespace tutti::model {
namespace {

using testing::HasSubstr;

constexpr Step kAcrossOneShot{Collective::all_reduce, "one_shot"};
constexpr Step kAcrossBarrier{Collective::barrier, "dissemination"};
constexpr Step kAcrossChain{Collective::broadcast, "chain"};
constexpr Step kAcrossLongChain{.collective = Collective::broadcast, .algorithm = "chain", .cells = 3};
constexpr Step kAcrossPairwise{Collective::all_to_all, "pairwise"};
constexpr Step kAcrossHalving{Collective::all_reduce, "halving"};
constexpr Step kAcrossRing{Collective::all_reduce, "ring"};
constexpr Step kAcrossScatter{.collective = Collective::reduce_scatter, .algorithm = "ring", .cells = 2};

constexpr Step kAcrossWindow{Collective::bandwidth, "channel"};

const std::vector<int> kTwo{0, 1}, kTwoAndOne{0, 0, 1}, kApart{0, 1, 0}, kThree{0, 1, 2};

const Scene kAcross[] = {
    {"flags_2", 2, 1, {kAcrossBarrier, kAcrossBarrier, kAcrossBarrier}, 4, kTwo},
    {"flags_3", 3, 1, {kAcrossBarrier, kAcrossBarrier, kAcrossBarrier}, 4, kTwoAndOne},
    {"flags_3_hosts", 3, 1, {kAcrossBarrier, kAcrossBarrier, kAcrossBarrier}, 4, kThree},
    {"lines_2", 2, 1, {kAcrossOneShot, kAcrossOneShot, kAcrossOneShot}, 4, kTwo},
    {"lines_3", 3, 1, {kAcrossOneShot, kAcrossOneShot, kAcrossOneShot}, 4, kTwoAndOne},
    {"lines_3_hosts", 3, 1, {kAcrossOneShot, kAcrossOneShot}, 4, kThree},
    {"one_slot_2", 2, 1, {kAcrossChain, kAcrossChain, kAcrossChain}, 4, kTwo},
    {"one_slot_3", 3, 1, {kAcrossChain, kAcrossPairwise, kAcrossChain}, 4, kTwoAndOne},
    {"ring_2", 2, 2, {kAcrossRing, kAcrossRing}, 4, kTwo},
    {"ring_3", 3, 2, {kAcrossRing}, 4, kTwoAndOne},
    {"halving_2", 2, 1, {kAcrossHalving, kAcrossHalving, kAcrossHalving}, 4, kTwo},
    {"lazy_counts_2", 2, 3, {kAcrossLongChain, kAcrossLongChain}, 64, kTwo},
    {"lazy_counts_3", 3, 3, {kAcrossLongChain, kAcrossLongChain}, 64, kApart},
    {"all_slots_3_hosts", 3, 3, {kAcrossScatter}, 64, kThree},
    {"fence_2", 2, 1, {kAcrossOneShot, kAcrossChain, kAcrossOneShot}, 4, kTwo},
    {"fence_3", 3, 1, {kAcrossOneShot, kAcrossChain, kAcrossOneShot}, 4, kTwoAndOne},
    {"flag_after_message_2", 2, 1, {kAcrossWindow, kAcrossWindow, kAcrossWindow, kAcrossWindow}, 4, kTwo},
    {"flag_after_message_3", 3, 1, {kAcrossWindow, kAcrossChain, kAcrossWindow, kAcrossBarrier}, 4, kApart},
    {"mixed_2", 2, 2, {kAcrossOneShot, kAcrossRing, kAcrossBarrier, kAcrossPairwise}, 4, kTwo},
    {"mixed_3", 3, 1, {kAcrossBarrier, kAcrossPairwise, kAcrossOneShot}, 4, kTwoAndOne},
};

const Scene& across(std::string_view name) {
  const auto* const found = std::ranges::find_if(kAcross, [&](const Scene& scene) { return scene.name == name; });
  EXPECT_NE(found, std::end(kAcross)) << name;
  return *found;
}

class BetweenHosts : public testing::TestWithParam<Scene> {};

TEST_P(BetweenHosts, IsRightInEveryInterleaving) {
  const Exploration found = explore(GetParam(), false);
  EXPECT_EQ(found.violation, "") << "after " << found.path;
  std::cout << GetParam().name << ": " << found.states << " states, all right\n";
  EXPECT_GT(found.states, 30U);
  EXPECT_GT(found.ends, 0U);
}

INSTANTIATE_TEST_SUITE_P(Scenes, BetweenHosts, testing::ValuesIn(kAcross),
                         [](const auto& instance) { return instance.param.name; });

/// So the model and `check_reach` agree on what may run.
TEST_P(BetweenHosts, HasStepsThatReachNoOtherHost) {
  const World world = world_of(GetParam(), false);
  for (const Step& step : GetParam().steps) {
    const Status reach = check_reach(schedule_of(world, step), true, Hosts(GetParam().hosts));
    EXPECT_TRUE(reach.is_ok()) << reach.message();
  }
}

/// What the explorer leaves out changes no verdict. With three ranks that takes too long.
class BetweenTwoHosts : public testing::TestWithParam<Scene> {};

TEST_P(BetweenTwoHosts, IsRightInOrdersThatDoNotMatterToo) {
  const World world = world_of(GetParam(), false);
  const Exploration all = Explorer(world, Explorer::Orders::all).explore();
  EXPECT_EQ(all.violation, "") << "after " << all.path;
  EXPECT_GT(all.states, Explorer(world).explore().states);
}

std::vector<Scene> scenes_of_two() {
  std::vector<Scene> scenes;
  std::ranges::copy_if(kAcross, std::back_inserter(scenes), [](const Scene& scene) { return scene.ranks == 2; });
  return scenes;
}
INSTANTIATE_TEST_SUITE_P(Scenes, BetweenTwoHosts, testing::ValuesIn(scenes_of_two()),
                         [](const auto& instance) { return instance.param.name; });

struct BreachBetween {
  std::string name;
  Fault fault;
  std::string scene;
  std::string finding;
};
void PrintTo(const BreachBetween& breach, std::ostream* out) { *out << breach.name; }

class BrokenBetweenHosts : public testing::TestWithParam<BreachBetween> {};

TEST_P(BrokenBetweenHosts, IsFound) {
  const BreachBetween& breach = GetParam();
  const Exploration found = explore(across(breach.scene), false, breach.fault);
  EXPECT_THAT(found.violation, HasSubstr(breach.finding));
  std::cout << breach.name << " on " << breach.scene << ", " << found.states << " states: " << found.violation
            << "; after " << found.path << "\n";
}

INSTANTIATE_TEST_SUITE_P(
    Rules, BrokenBetweenHosts,
    testing::Values(
        BreachBetween{"no_idle_flush", Fault::keeps_counts_when_idle, "all_slots_3_hosts",
                      "deadlock: no rank can go on"},
        BreachBetween{"credit_withheld", Fault::keeps_counts, "one_slot_2", "deadlock: no rank can go on"},
        BreachBetween{"credit_withheld_of_three_slots", Fault::keeps_counts, "lazy_counts_2",
                      "deadlock: no rank can go on"},
        BreachBetween{"header_before_payload", Fault::delivers_header_first, "one_slot_2",
                      "reads a slot before it was written"},
        BreachBetween{"header_before_payload_ring", Fault::delivers_header_first, "ring_3",
                      "reads a slot before it was written"},
        BreachBetween{"flag_before_line", Fault::delivers_flag_first, "lines_2", "reads a line before it was written"},
        BreachBetween{"no_fence", Fault::omits_fence, "fence_2", "that was overwritten"},
        BreachBetween{"no_fence_3", Fault::omits_fence, "fence_3", "that was overwritten"},
        BreachBetween{"late_fence", Fault::fences_late, "fence_2", "that was overwritten"},
        BreachBetween{"completion_across", Fault::hears_completion_across, "flag_after_message_2",
                      "deadlock: no rank can go on"},
        BreachBetween{"slices_out_of_order", Fault::delivers_out_of_order, "lazy_counts_2", "arrives where"},
        BreachBetween{"counts_out_of_order", Fault::delivers_out_of_order, "ring_2", "says that it has released"},
        BreachBetween{"publish_before_write", Fault::publishes_before_write, "one_slot_2",
                      "reads a slot before it was written"},
        BreachBetween{"consume_before_read", Fault::consumes_before_read, "lazy_counts_2", "not read yet"},
        BreachBetween{"a_slot_too_few", Fault::counts_a_slot_too_few, "one_slot_2", "has not given back"}),
    [](const auto& instance) { return instance.param.name; });

World three_of(const Schedule& schedule, const Step& step) {
  World world;
  world.hosts = kTwo;
  for (int i = 0; i < 3; ++i) add(world, operation_of(world, schedule, step), false);
  return world;
}

/// A root that waits for nobody takes what it does not know of ranks of other hosts for complete.
TEST(EarlyFlagBetweenHosts, IsFoundAndRefused) {
  const UnitSet all = unit(0);
  const Schedule schedule{.problem = {.collective = Collective::broadcast, .ranks = 2},
                          .name = "early",
                          .shape = {.units_per_block = 1, .scratch_units = 1},
                          .step_count = [](int rank) { return rank == 0 ? 3 : 2; },
                          .step = [=](int rank, int index) -> tutti::Step {
                            if (rank == 1) {
                              return index == 0 ? wait(only(0), 1) : final_move({output(1, all)}, {scratch(0, all)});
                            }
                            if (index == 1) return signal(only(1), 1, {.space = Space::scratch, .units = all});
                            return move({index == 0 ? scratch(0, all) : output(0, all)}, {input(0, all)});
                          }};
  const Exploration found = Explorer(three_of(schedule, {Collective::broadcast, "early"})).explore();
  EXPECT_THAT(found.violation, HasSubstr("was overwritten"));
  std::cout << found.violation << "; after " << found.path << "\n";
  EXPECT_THAT(std::string(check_reach(schedule, true, Hosts(kTwo)).message()), HasSubstr("without waiting for it"));
}

/// What is neither in a line nor in a slot does not cross.
TEST(MemoryOfAnotherHost, IsFoundAndRefused) {
  World world;
  world.hosts = kTwo;
  for (const Buffers buffers : {Buffers::private_, Buffers::shared}) {
    const Step step{.collective = Collective::all_gather, .algorithm = "direct", .buffers = buffers};
    const Schedule schedule = schedule_of(world, step);
    EXPECT_THAT(Explorer(three_of(schedule, step)).explore().violation, HasSubstr("which is on another host"));
    EXPECT_FALSE(check_reach(schedule, true, Hosts(kTwo)).is_ok());
  }
}

}  // namespace
}  // namespace tutti::model
