// SPDX-License-Identifier: Apache-2.0
// How long a segment is: what fits the slots and the scratch, in literals.
#include "impl/schedule/segment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/unit/impl/schedule/requests.h"

namespace tutti {
namespace {

using small::schedule_for;

/// Messages of half a block, which a channel must hold as a whole.
Schedule halves(int ranks) {
  return {.problem = {.collective = Collective::all_reduce, .ranks = ranks},
          .name = "halves",
          .shape = {.units_per_block = ranks, .largest_message = ranks / 2},
          .step_count = {},
          .step = {},
          .cost = {},
          .least_slots = [](int slices) { return slices; }};
}

BindRequest request_for(Count count, Buffers buffers = Buffers::shared) {
  return {.count = count,
          .op = Op::sum,
          .buffers = buffers,
          .resources = {.slots = 4, .slot_bytes = 128, .scratch_bytes = 1024}};
}

Count segment_of(const Schedule& schedule, const BindRequest& request) {
  const auto segment = choose_segment(schedule, request);
  EXPECT_TRUE(segment.is_ok()) << segment.status().message();
  return segment.is_ok() ? segment.value() : -1;
}

TEST(Segment, WithoutChannelsAndScratchItIsTheWholeCall) {
  const Schedule schedule = schedule_for(Collective::all_reduce, "two_shot", 2);
  EXPECT_EQ(segment_of(schedule, request_for(1'000'000)), 1'000'000);
}

TEST(Segment, OfAnEmptyCallHasOneElement) {
  EXPECT_EQ(segment_of(schedule_for(Collective::broadcast, "direct", 2), request_for(0)), 1);
}

// The ring needs a slot more than a message has slices: three slices of 128 bytes in four slots, 96 floats a unit.
TEST(Segment, OfARingLeavesOneSlotFree) {
  const Schedule ring = schedule_for(Collective::all_reduce, "ring", 4);
  EXPECT_EQ(segment_of(ring, request_for(4 * 96)), 4 * 96) << "fits as a whole";
  EXPECT_EQ(segment_of(ring, request_for(4 * 96 + 1)), 4 * 96);
  EXPECT_EQ(segment_of(ring, request_for(100'000)), 4 * 96);
}

// A message of two units in four slots: one slot's worth of slices for each half.
TEST(Segment, OfALongMessageSharesTheSlots) { EXPECT_EQ(segment_of(halves(4), request_for(100'000)), 4 * 64); }

// Where a send and a receive take turns, one slot carries any length.
TEST(Segment, OfAnExchangeInTurnIsTheWholeCall) {
  EXPECT_EQ(segment_of(schedule_for(Collective::all_to_all, "pairwise", 4), request_for(100'000)), 100'000);
}

TEST(Segment, OfAStagedCallFitsTheScratch) {
  const Schedule direct = schedule_for(Collective::all_to_all, "direct", 4);
  EXPECT_EQ(segment_of(direct, request_for(100'000)), 100'000);
  EXPECT_EQ(segment_of(direct, request_for(100'000, Buffers::private_)), 64) << "four blocks in 1024 bytes";
  EXPECT_EQ(segment_of(schedule_for(Collective::all_reduce, "two_shot", 2), request_for(100'000, Buffers::private_)),
            2 * 64)
      << "a mirror of the input and one of the output";
}

TEST(Segment, OfMoreRanksThanFitIsRefused) {
  const auto segment =
      choose_segment(schedule_for(Collective::all_to_all, "direct", 17), request_for(100, Buffers::private_));
  ASSERT_FALSE(segment.is_ok());
  EXPECT_EQ(segment.status().code(), Code::resource);
  EXPECT_EQ(segment.status().message(),
            "all_to_all direct on 17 ranks: a segment of 16 elements per block needs 1088 bytes of scratch; there are "
            "1024");
}

// A message never holds more than the segment: where a line for each unit is too long, the first units get one each and
// the others are empty.
TEST(Segment, BelowALinePerUnitIsWholeLinesThatFit) {
  const Schedule long_messages = halves(32);  // messages of 16 units
  EXPECT_EQ(segment_of(long_messages, request_for(100'000)), 8 * 16) << "four slots of 128 bytes are eight lines";
  EXPECT_EQ(segment_of(long_messages, request_for(128)), 128);
  EXPECT_EQ(segment_of(long_messages, request_for(129)), 128);
  const Schedule two_shot = schedule_for(Collective::all_reduce, "two_shot", 32);
  EXPECT_EQ(segment_of(two_shot, request_for(100'000, Buffers::private_)), 8 * 16) << "two mirrors in 1024 bytes";
}

// The shape that a job of `ranks` ranks gets, between processes: 8 slots that shrink to 256 bytes.
TEST(Segment, FitsEveryAlgorithmOnUpTo4096Ranks) {
  for (const Algorithm* algorithm : all_algorithms()) {
    for (const int ranks : {1, 2, 129, 130, 200, 1100, 2048, 4095, 4096}) {
      // Beside a line for each rank these have one for each cache.
      if (algorithm->is_by_caches && ranks > 2048) continue;
      const Schedule schedule = schedule_of(*algorithm, {.collective = algorithm->collective, .ranks = ranks});
      for (const Buffers buffers : {Buffers::shared, Buffers::private_}) {
        for (const Count count : {1, 100, 1 << 20}) {
          BindRequest request = request_for(count, buffers);
          request.resources = {.slots = 8, .slot_bytes = 256, .scratch_bytes = 256 * 1024};
          const auto segment = choose_segment(schedule, request);
          EXPECT_TRUE(segment.is_ok()) << segment.status().message();
        }
      }
    }
  }
}

TEST(Segment, OfAMessageOfMoreSlicesThanAnIntHoldsIsShortened) {
  const BindRequest request = request_for(Count{1} << 38U);  // two units of 2^32 slices of 128 bytes
  EXPECT_EQ(segment_of(schedule_for(Collective::all_reduce, "ring", 2), request), 2 * 96);
}

TEST(Segment, ThatWasAskedForIsTakenOrRefused) {
  const Schedule ring = schedule_for(Collective::all_reduce, "ring", 4);
  BindRequest request = request_for(1000);
  request.segment = 64;
  EXPECT_EQ(segment_of(ring, request), 64);
  request.count = 10;
  EXPECT_EQ(segment_of(ring, request), 10) << "no longer than the call";
  request.count = request.segment = 4 * 97;
  EXPECT_EQ(choose_segment(ring, request).status().code(), Code::resource);
}

TEST(ScratchLayout, MirrorsFollowTheSchedulesOwnUnits) {
  const Schedule schedule = schedule_for(Collective::all_reduce, "two_shot", 2);
  const BindRequest request = request_for(40, Buffers::private_);
  const UnitTable table({.units_per_block = 2, .segment = 40, .block = 40, .element_bytes = 4});
  const ScratchLayout layout = scratch_layout(schedule, request, table);
  EXPECT_EQ(layout.input_mirror, 0);
  EXPECT_EQ(layout.output_mirror, 192);
  EXPECT_EQ(layout.bytes, 384);
}

TEST(ScratchLayout, UnitsOfUpTo48BytesTakeNoScratch) {
  const Schedule schedule = schedule_for(Collective::all_reduce, "one_shot", 3);
  const auto layout_of = [&](Count count) {
    return scratch_layout(schedule, request_for(count),
                          UnitTable({.units_per_block = 1, .segment = count, .block = count, .element_bytes = 4}));
  };
  EXPECT_TRUE(layout_of(12).is_in_line);
  EXPECT_EQ(layout_of(12).bytes, 0);
  EXPECT_FALSE(layout_of(13).is_in_line);
  EXPECT_EQ(layout_of(13).bytes, 64);
}

TEST(Slices, AreCountedForTheLongestMessage) {
  const UnitTable table({.units_per_block = 4, .segment = 256, .block = 256, .element_bytes = 4});  // 256 bytes a unit
  EXPECT_EQ(slices_of(schedule_for(Collective::all_reduce, "ring", 4), request_for(256), table), 2);
  EXPECT_EQ(slices_of(schedule_for(Collective::all_reduce, "halving", 4), request_for(256), table), 4);
  EXPECT_EQ(slices_of(schedule_for(Collective::all_reduce, "two_shot", 4), request_for(256), table), 0);
}

}  // namespace
}  // namespace tutti
