// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/link_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/unit/harness/measure/machines_apart.h"

namespace tutti::harness::measure {
namespace {

constexpr std::int64_t kBytes = 4096;

Cell cell_of(Collective collective, int ranks, int root = 0) {
  Case one;
  one.collective = collective;
  one.ranks = ranks;
  one.dtype = Dtype::f32;
  one.op = is_reducing(collective) ? Op::sum : Op::none;
  one.root = root;
  one.bytes = kBytes;
  one.count = kBytes / 4 / (collective == Collective::all_gather || collective == Collective::all_to_all ? ranks : 1);
  return one;
}

TEST(LinkLimit, WhatIsReducedLeavesAMachineOnce) {
  const Hosts two_of_two({0, 0, 1, 1});
  EXPECT_THAT(leaving_bytes(cell_of(Collective::all_reduce, 4), two_of_two), testing::ElementsAre(kBytes, kBytes));
  EXPECT_THAT(leaving_bytes(cell_of(Collective::reduce, 4, 3), two_of_two), testing::ElementsAre(kBytes, 0));
}

TEST(LinkLimit, WhatIsKnownToARankOfAMachineIsNotSentThere) {
  const Hosts two_and_one({0, 0, 1});
  EXPECT_THAT(leaving_bytes(cell_of(Collective::broadcast, 3, 2), two_and_one), testing::ElementsAre(0, kBytes));
  EXPECT_THAT(leaving_bytes(cell_of(Collective::broadcast, 3, 0), Hosts({0, 0, 0})), testing::ElementsAre(0));
  const Hosts two_of_two({0, 0, 1, 1});
  EXPECT_THAT(leaving_bytes(cell_of(Collective::all_gather, 4), two_of_two),
              testing::ElementsAre(kBytes / 2, kBytes / 2));
  // Of its blocks a rank keeps its own machine's; each of the others is for one rank.
  EXPECT_THAT(leaving_bytes(cell_of(Collective::all_to_all, 4), two_of_two), testing::ElementsAre(kBytes, kBytes));
}

/// Calls the streams of a cell some times.
void stream_on(const std::vector<int>& machines, Collective collective) {
  on_machines(machines, [&](Runner& runner, const MeshPlace& place) {
    auto limit =
        LinkLimit::open(runner, {.machines = Hosts(place.machines), .interface = place.interface, .key = place.key});
    ASSERT_TRUE(limit.is_ok()) << limit.status().message();
    limit.value()->begin_cell(cell_of(collective, static_cast<int>(machines.size())));
    EXPECT_TRUE(limit.value()->has_something_to_send());
    auto streams = limit.value()->prepare({}, {});
    ASSERT_TRUE(streams.is_ok());
    for (int call = 0; call < 20; ++call) {
      ASSERT_TRUE(streams.value()->post(0).is_ok());
      for (bool is_done = false; !is_done;) {
        const auto done = streams.value()->test(0);
        ASSERT_TRUE(done.is_ok()) << done.status().message();
        is_done = done.value();
      }
      EXPECT_EQ(streams.value()->flaw(0), "");
      // What flaw has spoiled does not look like a stream that has come.
      const bool gets_some = place.machines[static_cast<std::size_t>(runner.index())] == 0 && runner.index() == 0;
      if (gets_some && call == 10) {
        EXPECT_THAT(streams.value()->flaw(0), testing::HasSubstr("is not that of call 11"));
      }
    }
  });
}

TEST(LinkLimit, TwoMachinesExchange) { stream_on({0, 0, 1}, Collective::all_reduce); }
TEST(LinkLimit, ThreeMachinesSendToTheNextOne) { stream_on({0, 1, 1, 2}, Collective::all_reduce); }

TEST(LinkLimit, ACellThatNeedsNothingOfAnotherMachineHasNone) {
  on_machines({0, 1}, [&](Runner& runner, const MeshPlace& place) {
    auto limit =
        LinkLimit::open(runner, {.machines = Hosts(place.machines), .interface = place.interface, .key = place.key});
    ASSERT_TRUE(limit.is_ok()) << limit.status().message();
    limit.value()->begin_cell(cell_of(Collective::barrier, 2));
    EXPECT_FALSE(limit.value()->has_something_to_send());
  });
}

}  // namespace
}  // namespace tutti::harness::measure
