// SPDX-License-Identifier: Apache-2.0
// From steps to ops in literals: staging, empty and needless moves, small scratch, slices and pieces.
#include "impl/schedule/lower.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/unit/impl/schedule/print.h"
#include "suites/unit/impl/schedule/requests.h"

namespace tutti {
namespace {

using small::plan_of;
using small::request_for;
using small::schedule_for;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Lower, ARingOfTwoIsThreeFusedMoves) {
  const Plan plan = plan_of(schedule_for(Collective::all_reduce, "ring", 2), request_for(0, 32));
  EXPECT_THAT(texts_of(plan),
              ElementsAre("CH(1)+0 <- IN+0, 64 bytes, opens, closes, slice 64",
                          "OUT+64, CH(1)+0 <- CH(1)+0 op IN+64, 64 bytes, final, opens, closes, slice 64",
                          "OUT+0 <- CH(1)+0, 64 bytes, opens, closes, slice 64"));
  EXPECT_TRUE(plan.header().uses_channels);
  EXPECT_FALSE(plan.header().uses_generation);
  EXPECT_EQ(plan.header().slices, 1);
}

TEST(Lower, UnitsBeyondTheCountAreEmptyTokensInChannels) {
  const Plan plan = plan_of(schedule_for(Collective::all_reduce, "ring", 2), request_for(0, 3));
  EXPECT_THAT(texts_of(plan), ElementsAre("CH(1)+0 <- IN+0, 12 bytes, opens, closes, slice 12",
                                          "OUT+0, CH(1)+0 <- CH(1)+0 op IN+0, 0 bytes, final, opens, closes, slice 0",
                                          "OUT+0 <- CH(1)+0, 12 bytes, opens, closes, slice 12"));
}

TEST(Lower, EmptyMovesWithoutChannelsAreAbsentAndSynchronisationStays) {
  const Plan plan = plan_of(schedule_for(Collective::all_to_all, "direct", 2), request_for(0, 0));
  EXPECT_THAT(texts_of(plan),
              ElementsAre("SIGNAL {1} phase 1, exposes", "WAIT {1} phase 1", "SIGNAL {1} phase 2", "WAIT {1} phase 2"));
}

TEST(Lower, InPlaceACopyOntoItselfDisappears) {
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

TEST(Lower, APrivateBufferIsStagedAndItsClosingStepsAreDropped) {
  const Schedule schedule = schedule_for(Collective::broadcast, "direct", 2);
  const Plan root = plan_of(schedule, request_for(0, 8, Buffers::private_));
  EXPECT_THAT(texts_of(root), ElementsAre("SCR+0 <- IN+0, 32 bytes", "SIGNAL {1} phase 1", "OUT+0 <- IN+0, 32 bytes"));
  EXPECT_TRUE(root.header().uses_generation);
  EXPECT_EQ(root.header().scratch_bytes, 64);
  const Plan leaf = plan_of(schedule, request_for(1, 8, Buffers::private_));
  EXPECT_THAT(texts_of(leaf), ElementsAre("WAIT {0} phase 1", "OUT+0 <- SCR+0@0, 32 bytes"));
  EXPECT_FALSE(leaf.header().uses_generation);
}

TEST(Lower, ExposedWritesArriveInTheMirrorAndMyOwnPartIsNotStaged) {
  const Plan plan = plan_of(schedule_for(Collective::all_reduce, "two_shot", 2), request_for(0, 32, Buffers::private_));
  EXPECT_THAT(
      texts_of(plan),
      ElementsAre("SCR+64 <- IN+64, 64 bytes",  // rank 1 reduces unit 1
                  "SIGNAL {1} phase 1", "WAIT {1} phase 1", "OUT+0, SCR+128@1 <- IN+0 op SCR+0@1, 64 bytes, final",
                  "SIGNAL {1} phase 2", "WAIT {1} phase 2", "OUT+64 <- SCR+192, 64 bytes"));
  EXPECT_EQ(plan.header().scratch_bytes, 256);
}

TEST(Lower, WhatAPeerMayWriteIsCopiedOutOnceAfterALaterPhaseOfThatPeer) {
  const auto step_of = [](int /*rank*/, int index) {
    const Exposure one_unit_each{.space = Space::output, .units = unit(0), .per_target = 1};
    const Exposure first_unit{.space = Space::output, .units = unit(0)};
    const std::array<Step, 6> steps{signal(others(0, 3), 1, {}, one_unit_each),
                                    wait(only(1), 2),
                                    signal(only(1), 3, {}, first_unit),
                                    wait(others(0, 3), 3),
                                    wait(only(2), 4),
                                    wait(only(1), 4)};
    return steps[static_cast<std::size_t>(index)];
  };
  const Schedule schedule{.problem = {.collective = Collective::all_reduce, .ranks = 3},
                          .name = "lets write",
                          .shape = {.units_per_block = 3, .exposes_output = true},
                          .step_count = [](int) { return 6; },
                          .step = step_of,
                          .cost = {},
                          .least_slots = {}};
  EXPECT_THAT(texts_of(plan_of(schedule, request_for(0, 48, Buffers::private_))),
              ElementsAre("SIGNAL {1,2} phase 1", "WAIT {1} phase 2", "OUT+64 <- SCR+64, 64 bytes",
                          "SIGNAL {1} phase 3", "WAIT {1,2} phase 3", "OUT+128 <- SCR+128, 64 bytes",
                          "WAIT {2} phase 4", "WAIT {1} phase 4", "OUT+0 <- SCR+0, 64 bytes"));
}

TEST(Lower, AnAllToAllInPlaceIsStagedEvenWithSharedBuffers) {
  BindRequest request = request_for(0, 16);
  request.is_in_place = true;
  EXPECT_THAT(texts_of(plan_of(schedule_for(Collective::all_to_all, "direct", 2), request)),
              ElementsAre("SCR+64 <- IN+64, 64 bytes", "SIGNAL {1} phase 1", "WAIT {1} phase 1",
                          "OUT+64 <- SCR+0@1, 64 bytes"));
}

TEST(Lower, ScratchOfUpTo48BytesLiesInTheFlagLine) {
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
TEST(Lower, APlanThatExposesUserBuffersHasNoScratchInTheFlagLine) {
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

TEST(Lower, AMessageIsCutIntoSlicesOfASlot) {
  const Plan plan = plan_of(schedule_for(Collective::broadcast, "knomial", 2), request_for(0, 50));
  EXPECT_THAT(texts_of(plan), ElementsAre("OUT+0, CH(1)+0 <- IN+0, 64 bytes, opens, closes, slice 64",
                                          "OUT+64, CH(1)+0 <- IN+64, 64 bytes, opens, closes, slice 64",
                                          "OUT+128, CH(1)+0 <- IN+128, 64 bytes, opens, closes, slice 64",
                                          "OUT+192, CH(1)+0 <- IN+192, 8 bytes, opens, closes, slice 8"));
  EXPECT_EQ(plan.header().slices, 4);
}

TEST(Lower, ASliceOfSeveralPiecesOpensAtTheFirstAndClosesAtTheLast) {
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

TEST(Lower, MovesThatTakeTurnsAreDealtOutSliceBySlice) {
  BindRequest request = request_for(0, 40);
  request.resources.slots = 1;
  EXPECT_THAT(texts_of(plan_of(schedule_for(Collective::all_to_all, "pairwise", 2), request)),
              ElementsAre("OUT+0 <- IN+0, 160 bytes",  //
                          "CH(1)+0 <- IN+160, 64 bytes, opens, closes, slice 64",
                          "OUT+160 <- CH(1)+0, 64 bytes, opens, closes, slice 64",
                          "CH(1)+0 <- IN+224, 64 bytes, opens, closes, slice 64",
                          "OUT+224 <- CH(1)+0, 64 bytes, opens, closes, slice 64",
                          "CH(1)+0 <- IN+288, 32 bytes, opens, closes, slice 32",
                          "OUT+288 <- CH(1)+0, 32 bytes, opens, closes, slice 32"));
}

TEST(Lower, ATurnIsAsManySlicesOfEachMoveAsTheSlotsAllow) {
  BindRequest request = request_for(0, 80);  // five slices to each other
  request.resources.slots = 2;
  EXPECT_THAT(texts_of(plan_of(schedule_for(Collective::all_to_all, "pairwise", 2), request)),
              ElementsAre("OUT+0 <- IN+0, 320 bytes",  //
                          "CH(1)+0 <- IN+320, 64 bytes, opens, closes, slice 64",
                          "CH(1)+0 <- IN+384, 64 bytes, opens, closes, slice 64",
                          "OUT+320 <- CH(1)+0, 64 bytes, opens, closes, slice 64",
                          "OUT+384 <- CH(1)+0, 64 bytes, opens, closes, slice 64",
                          "CH(1)+0 <- IN+448, 64 bytes, opens, closes, slice 64",
                          "CH(1)+0 <- IN+512, 64 bytes, opens, closes, slice 64",
                          "OUT+448 <- CH(1)+0, 64 bytes, opens, closes, slice 64",
                          "OUT+512 <- CH(1)+0, 64 bytes, opens, closes, slice 64",
                          "CH(1)+0 <- IN+576, 64 bytes, opens, closes, slice 64",
                          "OUT+576 <- CH(1)+0, 64 bytes, opens, closes, slice 64"));
}

TEST(Lower, ATurnIsShorterWhereItsSlicesNeedMoreSlots) {
  Schedule schedule = schedule_for(Collective::all_to_all, "pairwise", 2);
  schedule.least_slots = [](int slices) { return slices; };  // as if nothing took turns
  BindRequest request = request_for(0, 32);                  // two slices
  request.resources.slots = 3;
  const std::vector<std::string> texts = texts_of(plan_of(schedule, request));
  ASSERT_EQ(texts.size(), 5U);
  EXPECT_EQ(texts[1], "CH(1)+0 <- IN+128, 64 bytes, opens, closes, slice 64");
  EXPECT_EQ(texts[2], "CH(1)+0 <- IN+192, 64 bytes, opens, closes, slice 64");
  schedule.least_slots = [](int slices) { return 1 + slices; };
  EXPECT_EQ(texts_of(plan_of(schedule, request))[2], "OUT+128 <- CH(1)+0, 64 bytes, opens, closes, slice 64");
}

TEST(Lower, ATurnKeepsTheSlicesPiecesTogetherAndAMoveWithoutAnotherSliceIsPassedOver) {
  const auto step_of = [](int /*rank*/, int index) {
    const std::array<Step, 4> steps{in_turn(move({channel(1)}, {input(0, unit(0))})),
                                    in_turn(move({output(0, units(2, 3))}, {channel(2)})),
                                    move({channel(2)}, {input(0, units(0, 3))}),  // the chain ends here
                                    move({output(0, unit(1))}, {output(0, unit(2))})};
    return steps[static_cast<std::size_t>(index)];
  };
  const Schedule schedule{.problem = {.collective = Collective::all_to_all, .ranks = 3},
                          .name = "takes turns",
                          .shape = {.units_per_block = 1, .largest_message = 3},
                          .step_count = [](int) { return 4; },
                          .step = step_of,
                          .cost = {},
                          .least_slots = [](int /*slices*/) { return 1; }};
  BindRequest request = request_for(0, 16);
  request.resources.slot_bytes = 128;
  request.resources.slots = 1;
  EXPECT_THAT(
      texts_of(plan_of(schedule, request)),
      ElementsAre("CH(1)+0 <- IN+0, 64 bytes, opens, closes, slice 64",  //
                  "OUT+128 <- CH(2)+0, 64 bytes, opens, slice 128", "OUT+0 <- CH(2)+64, 64 bytes, closes, slice 128",
                  "CH(2)+0 <- IN+0, 128 bytes, opens, closes, slice 128",
                  "OUT+64 <- CH(2)+0, 64 bytes, opens, closes, slice 64",
                  "CH(2)+0 <- IN+128, 64 bytes, opens, closes, slice 64",  //
                  "OUT+64 <- OUT+128, 64 bytes"));
}

TEST(Lower, ARelayIsAsLongAsTheBlockThatItPassesOn) {
  const Schedule schedule{.problem = {.collective = Collective::gather, .ranks = 3},
                          .name = "relays",
                          .shape = {.units_per_block = 1, .largest_message = 1},
                          .step_count = [](int) { return 1; },
                          .step = [](int, int) { return relay(0, 2, output(0, unit(2))); },
                          .cost = {},
                          .least_slots = [](int /*slices*/) { return 1; }};
  EXPECT_THAT(texts_of(plan_of(schedule, request_for(1, 20))),
              ElementsAre("CH(0)+0 <- CH(2)+0, 64 bytes, opens, closes, slice 64",
                          "CH(0)+0 <- CH(2)+0, 16 bytes, opens, closes, slice 16"));
}

TEST(Lower, SeveralUnitsOfScratchLieALineApartAndWrapAround) {
  const Schedule schedule{.problem = {.collective = Collective::all_to_all, .ranks = 3},
                          .name = "keeps blocks",
                          .shape = {.units_per_block = 1, .scratch_units = 3, .largest_message = 2},
                          .step_count = [](int) { return 2; },
                          .step =
                              [](int, int index) {
                                const UnitSet two{.start = 2, .length = 1, .stride = 2, .repeat = 2};  // 2 and 1
                                if (index == 0) return move({scratch(0, two)}, {input(0, units(0, 2))});
                                return move({channel(1)}, {scratch(0, units(1, 2))});
                              },
                          .cost = {},
                          .least_slots = [](int slices) { return slices; }};
  BindRequest request = request_for(0, 20);
  request.resources.slot_bytes = 256;
  EXPECT_THAT(texts_of(plan_of(schedule, request)),
              ElementsAre("SCR+256 <- IN+0, 80 bytes", "SCR+128 <- IN+80, 80 bytes",
                          "CH(1)+0 <- SCR+128, 80 bytes, opens, slice 160",
                          "CH(1)+80 <- SCR+256, 80 bytes, closes, slice 160"));
}

TEST(Lower, OneRankAloneWithNothingToDoHasNoOps) {
  EXPECT_THAT(texts_of(plan_of(schedule_for(Collective::barrier, "dissemination", 1), request_for(0, 0))), IsEmpty());
}

TEST(Lower, StoresStreamWhereTheRanksTouchMoreThanTheCache) {
  BindRequest request = request_for(0, 16);
  const Schedule schedule = schedule_for(Collective::broadcast, "direct", 2);
  request.resources.cache_bytes = 2 * (64 + 64) - 1;
  EXPECT_EQ(texts_of(plan_of(schedule, request)).at(1), "OUT+0 <- IN+0, 64 bytes, streams");
  request.resources.cache_bytes = 2 * (64 + 64);
  EXPECT_EQ(texts_of(plan_of(schedule, request)).at(1), "OUT+0 <- IN+0, 64 bytes");
}

}  // namespace
}  // namespace tutti
