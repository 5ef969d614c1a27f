// SPDX-License-Identifier: Apache-2.0
// `auto`: what the table says in a few places, and that whatever it says can be bound.
#include <gtest/gtest.h>

#include "impl/communicator/communicator.h"
#include "impl/schedule/segment.h"

namespace tutti {
namespace {

constexpr int kCores = 2;

std::string_view chosen(Collective collective, int ranks, std::int64_t bytes) {
  return choose_algorithm({.collective = collective, .ranks = ranks}, Buffers::private_, kCores, bytes).name;
}

TEST(Selection, ManyRanksTakeTreesAndRings) {
  EXPECT_EQ(chosen(Collective::all_reduce, 128, 1 << 20), "two_shot");
  EXPECT_EQ(chosen(Collective::all_reduce, 129, 8), "recursive_doubling");
  EXPECT_EQ(chosen(Collective::all_reduce, 129, 1 << 20), "ring");
  EXPECT_EQ(chosen(Collective::reduce, 129, 8), "knomial");
  EXPECT_EQ(chosen(Collective::all_to_all, 129, 8), "bruck");
  EXPECT_EQ(chosen(Collective::all_to_all, 129, 1 << 20), "pairwise");
}

TEST(Selection, SeveralCachesOfAHostAreNestedWhereRanksHaveACoreEach) {
  const auto chosen_there = [](Collective collective, int ranks, int per_cache, std::int64_t bytes, int cores = 64) {
    const Problem problem{.collective = collective, .ranks = ranks, .ranks_per_cache = per_cache};
    return choose_algorithm(problem, Buffers::private_, cores, bytes).name;
  };
  EXPECT_EQ(chosen_there(Collective::broadcast, 32, 8, 64), "nested");
  EXPECT_EQ(chosen_there(Collective::broadcast, 32, 8, 1 << 20), "direct");
  EXPECT_EQ(chosen_there(Collective::all_reduce, 16, 8, 64), "nested_one_shot");
  EXPECT_EQ(chosen_there(Collective::all_reduce, 16, 8, 16384), "nested_two_shot");
  EXPECT_EQ(chosen_there(Collective::all_gather, 48, 8, 65536), "nested");
  EXPECT_EQ(chosen_there(Collective::barrier, 48, 8, 0), "nested");
  EXPECT_NE(chosen_there(Collective::barrier, 8, 8, 0), "nested") << "one cache";
  EXPECT_NE(chosen_there(Collective::barrier, 48, 0, 0), "nested") << "caches are not told";
  EXPECT_NE(chosen_there(Collective::barrier, 48, 8, 0, 2), "nested") << "ranks share cores";
}

// What one_shot moves grows with the square of the number of ranks.
TEST(Selection, OnDevicesOneRoundIsForFewerBytesTheMoreRanksThereAre) {
  const auto chosen_there = [](int ranks, std::int64_t bytes) {
    return choose_on_devices({.collective = Collective::all_reduce, .ranks = ranks}, Buffers::private_, bytes).name;
  };
  EXPECT_EQ(chosen_there(2, 1 << 20), "one_shot");
  EXPECT_EQ(chosen_there(8, 65536), "one_shot");
  EXPECT_EQ(chosen_there(8, 65540), "two_shot");
  EXPECT_EQ(chosen_there(33, 8), "two_shot");
  EXPECT_EQ(choose_on_devices({.collective = Collective::reduce, .ranks = 8}, Buffers::private_, 8).name, "direct");
}

TEST(Selection, SaysWhatWasMeasured) {
  const auto is_measured = [](Collective collective, int ranks, RanksPlace on) {
    return is_choice_measured({.collective = collective, .ranks = ranks}, Buffers::private_, kCores, 1 << 20, on);
  };
  EXPECT_TRUE(is_measured(Collective::all_reduce, 128, RanksPlace::one_host));
  EXPECT_FALSE(is_measured(Collective::all_reduce, 129, RanksPlace::one_host));
  EXPECT_TRUE(is_measured(Collective::broadcast, 2, RanksPlace::one_host));
  EXPECT_FALSE(is_measured(Collective::reduce, 129, RanksPlace::one_host));
  EXPECT_FALSE(is_measured(Collective::all_reduce, 2, RanksPlace::device));
  EXPECT_FALSE(is_measured(Collective::all_reduce, 2, RanksPlace::several_hosts));
  EXPECT_EQ(is_measured(Collective::barrier, 2, RanksPlace::device), algorithms_of(Collective::barrier).size() == 1);
}

// The shape that a job of `ranks` ranks gets, between processes: 8 slots that shrink to 256 bytes.
TEST(Selection, WhatIsChosenCanBeBound) {
  for (const Collective collective : every_collective()) {
    for (const int ranks : {1, 2, 3, 128, 129, 4096, 4097, 100'000}) {
      const Problem problem{.collective = collective, .ranks = ranks};
      for (const std::int64_t bytes : {std::int64_t{0}, std::int64_t{8}, std::int64_t{65536}, std::int64_t{1} << 30U}) {
        for (const Buffers buffers : {Buffers::private_, Buffers::shared}) {
          for (const Algorithm* const algorithm :
               {&choose_algorithm(problem, buffers, kCores, bytes), &choose_on_devices(problem, buffers, bytes)}) {
            const auto segment =
                choose_segment(schedule_of(*algorithm, problem),
                               {.count = count_for_bytes(problem, bytes, sizeof(float)),
                                .op = is_reducing(collective) ? Op::sum : Op::none,
                                .buffers = buffers,
                                .resources = {.slots = 8, .slot_bytes = 256, .scratch_bytes = 256 * 1024}});
            EXPECT_TRUE(segment.is_ok()) << segment.status().message();
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tutti
