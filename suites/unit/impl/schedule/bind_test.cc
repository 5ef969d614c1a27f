// SPDX-License-Identifier: Apache-2.0
// Binding in literals: small calls and the plans that must come out of them.
#include "impl/schedule/bind.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "impl/algorithms/algorithm.h"
#include "suites/unit/impl/schedule/print.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Schedule schedule_for(Collective collective, std::string_view name, int ranks, int root = 0) {
  return schedule_of(*find_algorithm(collective, name).value(),
                     {.collective = collective, .ranks = ranks, .root = root});
}

/// Floats, one cache line (16 of them) per slot, four slots.
BindRequest request_for(int rank, Count count, Buffers buffers = Buffers::shared) {
  return {.rank = rank,
          .count = count,
          .op = Op::sum,
          .buffers = buffers,
          .resources = {.slots = 4, .slot_bytes = 64, .scratch_bytes = 4096}};
}

BoundCall bound(const Schedule& schedule, const BindRequest& request) {
  auto call = bind(schedule, request);
  EXPECT_TRUE(call.is_ok()) << call.status().message();
  return call.is_ok() ? std::move(call).value() : BoundCall{};
}
/// The plan of a call that is one segment.
Plan plan_of(const Schedule& schedule, const BindRequest& request) {
  const BoundCall call = bound(schedule, request);
  EXPECT_EQ(call.segments(), 1);
  return call.plan(0);
}

TEST(Bind, ARingOfTwoIsThreeFusedMoves) {
  const Plan plan = plan_of(schedule_for(Collective::all_reduce, "ring", 2), request_for(0, 32));
  EXPECT_THAT(texts_of(plan),
              ElementsAre("CH(1)+0 <- IN+0, 64 bytes, opens, closes, slice 64",
                          "OUT+64, CH(1)+0 <- CH(1)+0 op IN+64, 64 bytes, final, opens, closes, slice 64",
                          "OUT+0 <- CH(1)+0, 64 bytes, opens, closes, slice 64"));
  EXPECT_TRUE(plan.header().uses_channels);
  EXPECT_FALSE(plan.header().uses_generation);
  EXPECT_EQ(plan.header().slices, 1);
}

TEST(Bind, UnitsBeyondTheCountAreEmptyTokensInChannels) {
  const Plan plan = plan_of(schedule_for(Collective::all_reduce, "ring", 2), request_for(0, 3));
  EXPECT_THAT(texts_of(plan), ElementsAre("CH(1)+0 <- IN+0, 12 bytes, opens, closes, slice 12",
                                          "OUT+0, CH(1)+0 <- CH(1)+0 op IN+0, 0 bytes, final, opens, closes, slice 0",
                                          "OUT+0 <- CH(1)+0, 12 bytes, opens, closes, slice 12"));
}

TEST(Bind, EmptyMovesWithoutChannelsAreAbsentAndSynchronisationStays) {
  const Plan plan = plan_of(schedule_for(Collective::all_to_all, "direct", 2), request_for(0, 0));
  EXPECT_THAT(texts_of(plan),
              ElementsAre("SIGNAL {1} phase 1, exposes", "WAIT {1} phase 1", "SIGNAL {1} phase 2", "WAIT {1} phase 2"));
}

TEST(Bind, InPlaceACopyOntoItselfDisappears) {
  const Schedule schedule = schedule_for(Collective::broadcast, "direct", 2);
  BindRequest request = request_for(0, 8);
  EXPECT_THAT(texts_of(plan_of(schedule, request)),
              ElementsAre("SIGNAL {1} phase 1, exposes", "OUT+0 <- IN+0, 32 bytes", "WAIT {1} phase 2"));
  request.is_in_place = true;
  EXPECT_THAT(texts_of(plan_of(schedule, request)), ElementsAre("SIGNAL {1} phase 1, exposes", "WAIT {1} phase 2"));
  request.rank = 1;  // another rank's input is not my output
  EXPECT_THAT(texts_of(plan_of(schedule, request)),
              ElementsAre("WAIT {0} phase 1", "OUT+0 <- IN+0@0, 32 bytes", "SIGNAL {0} phase 2"));
}

TEST(Bind, APrivateBufferIsStagedAndItsClosingStepsAreDropped) {
  const Schedule schedule = schedule_for(Collective::broadcast, "direct", 2);
  const Plan root = plan_of(schedule, request_for(0, 8, Buffers::private_));
  EXPECT_THAT(texts_of(root), ElementsAre("SCR+0 <- IN+0, 32 bytes", "SIGNAL {1} phase 1", "OUT+0 <- IN+0, 32 bytes"));
  EXPECT_TRUE(root.header().uses_generation);
  EXPECT_EQ(root.header().scratch_bytes, 64);
  const Plan leaf = plan_of(schedule, request_for(1, 8, Buffers::private_));
  EXPECT_THAT(texts_of(leaf), ElementsAre("WAIT {0} phase 1", "OUT+0 <- SCR+0@0, 32 bytes"));
  EXPECT_FALSE(leaf.header().uses_generation);
}

TEST(Bind, ExposedWritesArriveInTheMirrorAndMyOwnPartIsNotStaged) {
  const Plan plan = plan_of(schedule_for(Collective::all_reduce, "two_shot", 2), request_for(0, 32, Buffers::private_));
  EXPECT_THAT(
      texts_of(plan),
      ElementsAre("SCR+64 <- IN+64, 64 bytes",  // rank 1 reduces unit 1
                  "SIGNAL {1} phase 1", "WAIT {1} phase 1", "OUT+0, SCR+128@1 <- IN+0 op SCR+0@1, 64 bytes, final",
                  "SIGNAL {1} phase 2", "WAIT {1} phase 2", "OUT+64 <- SCR+192, 64 bytes"));
  EXPECT_EQ(plan.header().scratch_bytes, 256);
}

TEST(Bind, AnAllToAllInPlaceIsStagedEvenWithSharedBuffers) {
  BindRequest request = request_for(0, 16);
  request.is_in_place = true;
  EXPECT_THAT(texts_of(plan_of(schedule_for(Collective::all_to_all, "direct", 2), request)),
              ElementsAre("SCR+64 <- IN+64, 64 bytes", "SIGNAL {1} phase 1", "WAIT {1} phase 1",
                          "OUT+64 <- SCR+0@1, 64 bytes"));
}

TEST(Bind, ScratchOfUpTo48BytesLiesInTheFlagLine) {
  const Schedule schedule = schedule_for(Collective::all_reduce, "one_shot", 2);
  const Plan small = plan_of(schedule, request_for(0, 12));
  EXPECT_EQ(texts_of(small).front(), "LINE+0 <- IN+0, 48 bytes");
  EXPECT_THAT(texts_of(small).back(), HasSubstr("LINE+0@1, 48 bytes, final"));
  EXPECT_EQ(small.header().scratch_bytes, 0);
  const Plan larger = plan_of(schedule, request_for(0, 13));
  EXPECT_EQ(texts_of(larger).front(), "SCR+0 <- IN+0, 52 bytes");
  EXPECT_THAT(texts_of(larger).back(), HasSubstr("SCR+0@1, 52 bytes, final"));
  EXPECT_EQ(larger.header().scratch_bytes, 64);
}

// The references to exposed buffers lie where the scratch would.
TEST(Bind, APlanThatExposesUserBuffersHasNoScratchInTheFlagLine) {
  const Schedule schedule{.problem = {.collective = Collective::all_reduce, .ranks = 2},
                          .name = "exposes and has scratch",
                          .shape = {.units_per_block = 1, .scratch_units = 1, .exposes_input = true},
                          .step_count = [](int) { return 2; },
                          .step =
                              [](int rank, int index) {
                                if (index == 0) return move({scratch(rank, unit(0))}, {input(rank, unit(0))});
                                return signal(others(rank, 2), 1, {.space = Space::input, .units = unit(0)});
                              },
                          .cost = {},
                          .least_slots = {}};
  EXPECT_THAT(texts_of(plan_of(schedule, request_for(0, 4))),
              ElementsAre("SCR+0 <- IN+0, 16 bytes", "SIGNAL {1} phase 1, exposes"));
  EXPECT_THAT(texts_of(plan_of(schedule, request_for(0, 4, Buffers::private_))),
              ElementsAre("LINE+0 <- IN+0, 16 bytes", "SCR+0 <- IN+0, 16 bytes", "SIGNAL {1} phase 1"));
}

TEST(Bind, AMessageIsCutIntoSlicesOfASlot) {
  const Plan plan = plan_of(schedule_for(Collective::broadcast, "knomial", 2), request_for(0, 50));
  EXPECT_THAT(texts_of(plan), ElementsAre("OUT+0, CH(1)+0 <- IN+0, 64 bytes, opens, closes, slice 64",
                                          "OUT+64, CH(1)+0 <- IN+64, 64 bytes, opens, closes, slice 64",
                                          "OUT+128, CH(1)+0 <- IN+128, 64 bytes, opens, closes, slice 64",
                                          "OUT+192, CH(1)+0 <- IN+192, 8 bytes, opens, closes, slice 8"));
  EXPECT_EQ(plan.header().slices, 4);
}

TEST(Bind, ASliceOfSeveralPiecesOpensAtTheFirstAndClosesAtTheLast) {
  BindRequest request = request_for(2, 48);
  request.resources.slot_bytes = 128;
  // The last units of the block and the first: rank 2 of 3 sends what rank 1 completes, then it wraps around.
  const Schedule schedule{.problem = {.collective = Collective::all_to_all, .ranks = 3},
                          .name = "wraps",
                          .shape = {.units_per_block = 1, .largest_message = 2},
                          .step_count = [](int) { return 1; },
                          .step = [](int, int) { return move({channel(0)}, {input(2, units(2, 2))}); },
                          .cost = {},
                          .least_slots = [](int slices) { return slices; }};
  request.count = 16;
  EXPECT_THAT(texts_of(plan_of(schedule, request)), ElementsAre("CH(0)+0 <- IN+128, 64 bytes, opens, slice 128",
                                                                "CH(0)+64 <- IN+0, 64 bytes, closes, slice 128"));
}

TEST(Bind, ALongCallIsFullSegmentsAndATail) {
  BindRequest request = request_for(0, 40);
  request.segment = 16;
  const BoundCall call = bound(schedule_for(Collective::broadcast, "knomial", 2), request);
  EXPECT_EQ(call.full_segments, 2);
  EXPECT_TRUE(call.has_tail);
  EXPECT_EQ(call.segments(), 3);
  EXPECT_EQ(call.segment_bytes, 64);
  EXPECT_THAT(texts_of(call.plan(1)), ElementsAre("OUT+0, CH(1)+0 <- IN+0, 64 bytes, opens, closes, slice 64"));
  EXPECT_THAT(texts_of(call.plan(2)), ElementsAre("OUT+0, CH(1)+0 <- IN+0, 32 bytes, opens, closes, slice 32"));
}

TEST(Bind, BlocksOfASegmentKeepTheirDistanceInTheUsersBuffer) {
  BindRequest request = request_for(0, 40);
  request.segment = 16;
  const BoundCall call = bound(schedule_for(Collective::all_to_all, "pairwise", 2), request);
  EXPECT_THAT(texts_of(call.plan(0)),
              ElementsAre("OUT+0 <- IN+0, 64 bytes", "CH(1)+0 <- IN+160, 64 bytes, opens, closes, slice 64",
                          "OUT+160 <- CH(1)+0, 64 bytes, opens, closes, slice 64"));
}

TEST(Bind, OneRankAloneWithNothingToDoHasNoOps) {
  EXPECT_THAT(texts_of(plan_of(schedule_for(Collective::barrier, "dissemination", 1), request_for(0, 0))), IsEmpty());
}

TEST(Bind, StoresStreamWhereTheRanksTouchMoreThanTheCache) {
  BindRequest request = request_for(0, 16);
  const Schedule schedule = schedule_for(Collective::broadcast, "direct", 2);
  request.resources.cache_bytes = 2 * (64 + 64) - 1;
  EXPECT_EQ(texts_of(plan_of(schedule, request)).at(1), "OUT+0 <- IN+0, 64 bytes, streams");
  request.resources.cache_bytes = 2 * (64 + 64);
  EXPECT_EQ(texts_of(plan_of(schedule, request)).at(1), "OUT+0 <- IN+0, 64 bytes");
}

// ---- the key

TEST(Bind, TheHashIsTheSameOnAllRanksAndOtherForEveryOtherCall) {
  const Schedule schedule = schedule_for(Collective::broadcast, "direct", 3);
  const auto hash = [](const Schedule& one, const BindRequest& request) { return plan_of(one, request).header().hash; };
  const BindRequest request = request_for(0, 8);
  const std::uint64_t first = hash(schedule, request);
  EXPECT_EQ(hash(schedule, request_for(2, 8)), first);

  std::set<std::uint64_t> hashes{first};
  const auto other = [&](auto change) {
    BindRequest changed = request;
    change(changed);
    return hash(schedule, changed);
  };
  EXPECT_TRUE(hashes.insert(other([](BindRequest& r) { r.count = 9; })).second);
  EXPECT_TRUE(hashes.insert(other([](BindRequest& r) { r.dtype = Dtype::i32; })).second);
  EXPECT_TRUE(hashes.insert(other([](BindRequest& r) { r.op = Op::max; })).second);
  EXPECT_TRUE(hashes.insert(other([](BindRequest& r) { r.is_in_place = true; })).second);
  EXPECT_TRUE(hashes.insert(other([](BindRequest& r) { r.buffers = Buffers::private_; })).second);
  EXPECT_TRUE(hashes.insert(hash(schedule_for(Collective::broadcast, "direct", 3, 1), request)).second) << "root";
  EXPECT_TRUE(hashes.insert(hash(schedule_for(Collective::broadcast, "knomial", 3), request)).second) << "algorithm";
  EXPECT_TRUE(hashes.insert(hash(schedule_for(Collective::broadcast, "direct", 4), request)).second) << "ranks";
}

// ---- refusals

std::string refusal(const Schedule& schedule, const BindRequest& request, Code code) {
  const auto call = bind(schedule, request);
  EXPECT_FALSE(call.is_ok());
  EXPECT_EQ(call.status().code(), code) << call.status().message();
  return call.status().message();
}

TEST(Bind, OneSlotTooFewIsRefusedWithTheNumbers) {
  const Schedule ring = schedule_for(Collective::all_reduce, "ring", 4);
  BindRequest request = request_for(0, 4 * 16);
  request.segment = request.count;
  request.resources.slots = 2;
  EXPECT_TRUE(bind(ring, request).is_ok());
  request.resources.slots = 1;
  EXPECT_EQ(
      refusal(ring, request, Code::resource),
      "all_reduce ring on 4 ranks: a segment of 64 elements per block has messages of 1 slices, which need 2 slots "
      "of 64 bytes; the channel has 1");
}

TEST(Bind, TooLittleScratchIsRefusedWithTheNumbers) {
  BindRequest request = request_for(0, 100, Buffers::private_);
  request.segment = 100;
  request.resources.scratch_bytes = 256;
  EXPECT_EQ(
      refusal(schedule_for(Collective::all_to_all, "direct", 3), request, Code::resource),
      "all_to_all direct on 3 ranks: a segment of 100 elements per block needs 1344 bytes of scratch; there are 256");
}

TEST(Bind, ValuesOutOfRangeAreNamed) {
  const Schedule schedule = schedule_for(Collective::broadcast, "direct", 2);
  EXPECT_EQ(refusal(schedule, request_for(2, 1), Code::invalid_argument), "rank 2 is out of range: 0 to 1");
  EXPECT_EQ(refusal(schedule, request_for(0, -1), Code::invalid_argument), "count -1 is negative: 0 or more");
  EXPECT_EQ(refusal(schedule_for(Collective::broadcast, "direct", 2, 2), request_for(0, 1), Code::invalid_argument),
            "root 2 is out of range: 0 to 1");
  BindRequest request = request_for(0, 1);
  request.segment = -5;
  EXPECT_EQ(refusal(schedule, request, Code::invalid_argument), "segment -5 is negative: 0 or more");
  request = request_for(0, 1);
  request.resources.slot_bytes = 100;
  EXPECT_EQ(refusal(schedule, request, Code::invalid_argument), "slots of 100 bytes: a positive multiple of 64");
}

}  // namespace
}  // namespace tutti
