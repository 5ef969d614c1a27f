// SPDX-License-Identifier: Apache-2.0
// The flag and slot protocol, in every interleaving of two or three ranks: consecutive operations that use generations
// and slots again. Nothing is read before it is published or overwritten before it is read, no generation is used too
// early, no rank waits for ever, and every output is right. Each rule that is broken on purpose is found.
#include <iostream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/unit/impl/execute/scenes.h"

namespace tutti::model {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

constexpr Step kOneShot{Collective::all_reduce, "one_shot"};
constexpr Step kBroadcast{Collective::broadcast, "direct"};
constexpr Step kBarrier{Collective::barrier, "dissemination"};
constexpr Step kChain{Collective::broadcast, "chain"};
constexpr Step kLongChain{.collective = Collective::broadcast, .algorithm = "chain", .cells = 2};
constexpr Step kPairwise{Collective::all_to_all, "pairwise"};
constexpr Step kRing{Collective::all_reduce, "ring"};
constexpr Step kTwoShot{.collective = Collective::all_reduce, .algorithm = "two_shot", .buffers = Buffers::shared};
constexpr Step kGather{.collective = Collective::all_gather, .algorithm = "direct", .buffers = Buffers::shared};
constexpr Step kPull{.collective = Collective::broadcast, .algorithm = "direct", .buffers = Buffers::shared};

const Scene kScenes[] = {
    {"flags_2", 2, 1, {kBarrier, kBarrier, kBarrier}},
    {"flags_3", 3, 1, {kBarrier, kBarrier, kBarrier}},
    {"lines_2", 2, 1, {kOneShot, kOneShot, kOneShot}},
    {"lines_3", 3, 1, {kOneShot, kOneShot, kOneShot}},
    {"credit_2", 2, 1, {kBroadcast, kBroadcast, kBroadcast}},
    {"credit_3", 3, 1, {kBroadcast, kBroadcast, kBroadcast}},
    {"credit_after_all_3", 3, 1, {kOneShot, kBroadcast, kBroadcast}},
    {"references_2", 2, 1, {kTwoShot, kGather, kPull}},
    {"references_3", 3, 1, {kPull, kGather}},
    {"one_slot_2", 2, 1, {kChain, kChain, kChain}},
    {"two_slots_2", 2, 2, {kChain, kChain, kChain}},
    {"one_slot_3", 3, 1, {kChain, kPairwise, kChain}},
    {"two_slots_3", 3, 2, {kChain, kRing, kChain}},
    {"slices_through_one_slot_2", 2, 1, {kLongChain, kLongChain}, 64},
    {"slices_through_one_slot_3", 3, 1, {kLongChain, kLongChain}, 64},
    {"slices_through_two_slots_3", 3, 2, {kLongChain, kLongChain}, 64},
};

const Scene& scene_of(std::string_view name) {
  const auto* const found = std::ranges::find_if(kScenes, [&](const Scene& scene) { return scene.name == name; });
  EXPECT_NE(found, std::end(kScenes)) << name;
  return *found;
}

class Protocol : public testing::TestWithParam<Scene> {
 protected:
  static void expect_right(const Exploration& found, const char* how) {
    EXPECT_EQ(found.violation, "") << "after " << found.path;
    std::cout << GetParam().name << ", " << how << ": " << found.states << " states, all right\n";
    RecordProperty(how, std::to_string(found.states));
    EXPECT_GT(found.states, 30U);
    EXPECT_GT(found.ends, 0U);
  }
};

TEST_P(Protocol, IsRightInEveryInterleaving) { expect_right(explore(GetParam(), false), "stores at once"); }
TEST_P(Protocol, IsRightWhereverStoresAreDelayed) { expect_right(explore(GetParam(), true), "stores delayed"); }

INSTANTIATE_TEST_SUITE_P(Scenes, Protocol, testing::ValuesIn(kScenes),
                         [](const auto& instance) { return instance.param.name; });

struct Breach {
  std::string name;
  Fault fault;
  std::string scene;
  std::string finding;
  bool delays_stores = false;
};
void PrintTo(const Breach& breach, std::ostream* out) { *out << breach.name; }

class Broken : public testing::TestWithParam<Breach> {};

TEST_P(Broken, IsFound) {
  const Breach& breach = GetParam();
  const Exploration found = explore(scene_of(breach.scene), breach.delays_stores, breach.fault);
  EXPECT_THAT(found.violation, HasSubstr(breach.finding));
  std::cout << breach.name << " on " << breach.scene << ", " << found.states << " states: " << found.violation
            << "; after " << found.path << "\n";
  if (!breach.delays_stores) return;
  EXPECT_EQ(explore(scene_of(breach.scene), false, breach.fault).violation, "") << "it takes a delay";
}

INSTANTIATE_TEST_SUITE_P(
    Rules, Broken,
    testing::Values(
        Breach{"publish_before_write", Fault::publishes_before_write, "one_slot_2",
               "reads a slot before it was written"},
        Breach{"publish_before_write_two_slots", Fault::publishes_before_write, "two_slots_3",
               "reads a slot before it was written"},
        Breach{"consume_before_read", Fault::consumes_before_read, "one_slot_2", "that was not read yet"},
        Breach{"consume_before_read_slices", Fault::consumes_before_read, "slices_through_two_slots_3",
               "that was not read yet"},
        Breach{"a_slot_too_few", Fault::counts_a_slot_too_few, "one_slot_2", "that was not read yet"},
        Breach{"a_slot_too_few_of_two", Fault::counts_a_slot_too_few, "two_slots_2", "that was not read yet"},
        Breach{"reuse_without_wait", Fault::reuses_without_wait, "credit_2", "uses generation 1 again"},
        Breach{"reuse_without_wait_3", Fault::reuses_without_wait, "credit_3", "uses generation 1 again"},
        Breach{"credit_of_all_generations", Fault::credits_all_generations, "credit_after_all_3",
               "uses generation 1 again"},
        Breach{"complete_told_before", Fault::tells_before_read, "credit_2", "uses generation 1 again"},
        Breach{"complete_never_told", Fault::never_tells, "credit_2", "deadlock: no rank can go on"},
        Breach{"relaxed_header", Fault::publishes_relaxed, "one_slot_2", "reads a slot before it was written", true},
        Breach{"relaxed_flag", Fault::announces_relaxed, "lines_2", "reads a line before it was written", true}),
    [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace tutti::model
