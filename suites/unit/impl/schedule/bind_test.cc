// SPDX-License-Identifier: Apache-2.0
// Binding in literals: segments and their tails, the key that all ranks share, and what is refused.
#include "impl/schedule/bind.h"

#include <limits>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/unit/impl/schedule/print.h"
#include "suites/unit/impl/schedule/requests.h"

namespace tutti {
namespace {

using small::bound;
using small::plan_of;
using small::request_for;
using small::schedule_for;
using testing::ElementsAre;
using testing::HasSubstr;

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

// ---- v forms

BlockTable all_to_all_blocks(const std::vector<Count>& send, const std::vector<Count>& receive,
                             const std::vector<Count>& displacements) {
  const Problem problem{.collective = Collective::all_to_all_v, .ranks = static_cast<int>(send.size())};
  return blocks_of(problem, {.counts = send}, {.counts = receive, .displacements = displacements}, sizeof(float))
      .value();
}

// Rank 0 sends 20 floats to rank 1, in slices of 16, and gets 5; its own block of 2 lies behind them.
TEST(Bind, BlocksOfTheirOwnAreOneSegmentWhateverTheirLengths) {
  BindRequest request = request_for(0, 0);
  request.op = Op::none;
  const BlockTable blocks = all_to_all_blocks({2, 20}, {2, 5}, {9, 1});
  request.blocks = &blocks;
  const BoundCall call = bound(schedule_for(Collective::all_to_all, "pairwise", 2), request);
  EXPECT_EQ(call.segments(), 1);
  EXPECT_THAT(texts_of(call.plan(0)),
              ElementsAre("OUT+36 <- IN+0, 8 bytes", "CH(1)+0 <- IN+8, 64 bytes, opens, closes, slice 64",
                          "CH(1)+0 <- IN+72, 16 bytes, opens, closes, slice 16",
                          "OUT+4 <- CH(1)+0, 20 bytes, opens, closes, slice 20"));
  EXPECT_EQ(call.plan(0).header().input_bytes, 88);
  EXPECT_EQ(call.plan(0).header().output_bytes, 44);
}

TEST(Bind, AnEmptyBlockIsATokenToAPeerAndNothingToOneself) {
  BindRequest request = request_for(0, 0);
  request.op = Op::none;
  const BlockTable blocks = all_to_all_blocks({0, 0}, {0, 3}, {0, 0});
  request.blocks = &blocks;
  EXPECT_THAT(texts_of(plan_of(schedule_for(Collective::all_to_all, "pairwise", 2), request)),
              ElementsAre("CH(1)+0 <- IN+0, 0 bytes, opens, closes, slice 0",
                          "OUT+0 <- CH(1)+0, 12 bytes, opens, closes, slice 12"));
}

// What a message has left tells both ends whether they mean the same one, from its first slice on.
TEST(Bind, EverySliceSaysWhatIsLeftOfItsMessage) {
  BindRequest request = request_for(0, 0);
  request.op = Op::none;
  const BlockTable blocks = all_to_all_blocks({0, 40}, {0, 0}, {0, 0});
  request.blocks = &blocks;
  const Plan plan = plan_of(schedule_for(Collective::all_to_all, "pairwise", 2), request);
  std::vector<std::int64_t> rest;
  for (const PlanOp& op : plan.ops()) rest.push_back(op.rest_bytes);
  EXPECT_THAT(rest, ElementsAre(160, 96, 32, 0));
}

TEST(Bind, AVFormsHashHoldsWhatAllRanksKnow) {
  const Schedule schedule = schedule_for(Collective::all_to_all, "pairwise", 2);
  const auto hash = [&](const BlockTable& blocks) {
    BindRequest request = request_for(0, 0);
    request.op = Op::none;
    request.blocks = &blocks;
    return plan_of(schedule, request).header().hash;
  };
  const std::uint64_t one = hash(all_to_all_blocks({1, 2}, {1, 2}, {0, 1}));
  EXPECT_EQ(one, hash(all_to_all_blocks({3, 0}, {3, 9}, {9, 0}))) << "no rank knows another's blocks";
  EXPECT_NE(one, plan_of(schedule, request_for(0, 2)).header().hash)
      << "the collective of equal blocks is another call";
}

TEST(Bind, RefusesBlocksWhereTheScheduleTakesNone) {
  BindRequest request = request_for(0, 0);
  const BlockTable blocks = all_to_all_blocks({1, 2}, {1, 2}, {0, 1});
  request.blocks = &blocks;
  const Status status = bind(schedule_for(Collective::all_to_all, "direct", 2), request).status();
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_THAT(status.message(), HasSubstr("all_to_all direct takes no counts"));
}

TEST(Bind, RefusesBlocksBeyondWhatAPlanHolds) {
  BindRequest request = request_for(0, 0);
  request.op = Op::none;
  const BlockTable blocks = all_to_all_blocks({0, Count{1} << 40}, {0, 0}, {0, 0});
  request.blocks = &blocks;
  const Status status = bind(schedule_for(Collective::all_to_all, "pairwise", 2), request).status();
  EXPECT_EQ(status.code(), Code::resource);
  EXPECT_THAT(status.message(),
              HasSubstr("4398046511104 bytes in one call; slots of 64 bytes carry at most 4294967296"));
}

// ---- the key

/// On three ranks.
Schedule paired(std::string_view collective, const Pairing& pairing) {
  const Problem problem{.collective = parse_collective(collective).value(), .ranks = 3, .pairing = pairing};
  return schedule_of(*find_algorithm(problem.collective, "direct").value(), problem);
}

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
  EXPECT_TRUE(hashes.insert(hash(paired("bandwidth", {.window = 2}), request)).second);
  EXPECT_TRUE(hashes.insert(hash(paired("bandwidth", {.window = 3}), request)).second) << "window";
  EXPECT_TRUE(hashes.insert(hash(paired("bandwidth", {.window = 3, .first = 0, .second = 1}), request)).second);
  EXPECT_TRUE(hashes.insert(hash(paired("bandwidth", {.window = 3, .first = 0, .second = 2}), request)).second);
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

TEST(Bind, AWindowAndAPairOutOfRangeAreNamed) {
  const auto refused = [](std::string_view collective, const Pairing& pairing) {
    return refusal(paired(collective, pairing), request_for(0, 1), Code::invalid_argument);
  };
  EXPECT_EQ(refused("bandwidth", {.window = 0}), "window 0 of bandwidth is out of range: 1 to 1024");
  EXPECT_EQ(refused("bandwidth", {.window = 1025}), "window 1025 of bandwidth is out of range: 1 to 1024");
  EXPECT_EQ(refused("pingpong", {.window = 2}), "window 2 of pingpong is out of range: 1 to 1");
  for (const Pairing& none : {Pairing{.first = 0, .second = 3}, {.first = 1, .second = 1}, {.first = 2, .second = 1}}) {
    EXPECT_THAT(refused("bandwidth", none), HasSubstr("two of its ranks 0 to 2, the lower first"));
  }
  EXPECT_THAT(refused("message_rate", {.first = 0, .second = 1}), HasSubstr("pair 0-1 of message_rate"));
}

TEST(Bind, ACountWhoseBytesCannotBeCountedIsRefused) {
  const Schedule schedule = schedule_for(Collective::all_reduce, "two_shot", 2);
  constexpr Count kMost = std::numeric_limits<std::int64_t>::max() / 16 / (2 * 4);
  EXPECT_EQ(refusal(schedule, request_for(0, Count{1} << 62U), Code::invalid_argument),
            fmt::format("count 4611686018427387904 is out of range: 0 to {} elements of 4 bytes per block on 2 ranks",
                        kMost));
  EXPECT_EQ(refusal(schedule, request_for(0, (Count{1} << 62U) + 4), Code::invalid_argument),
            fmt::format("count 4611686018427387908 is out of range: 0 to {} elements of 4 bytes per block on 2 ranks",
                        kMost));
  EXPECT_EQ(bind(schedule, request_for(0, kMost + 1)).status().code(), Code::invalid_argument);
  BindRequest request = request_for(0, kMost);
  request.resources.cache_bytes = std::numeric_limits<std::int64_t>::max();
  const Plan plan = plan_of(schedule, request);
  EXPECT_EQ(plan.header().input_bytes, kMost * 4);
  EXPECT_THAT(texts_of(plan).at(2), HasSubstr("final")) << "whatever the ranks touch is below this cache";
}

TEST(Bind, AShapeThatIsNoneIsRefused) {
  Schedule schedule = schedule_for(Collective::all_reduce, "two_shot", 2);
  schedule.shape.units_per_block = 0;
  EXPECT_EQ(refusal(schedule, request_for(0, 1), Code::invalid_argument),
            "two_shot has a shape of 0 units per block, 0 in scratch and 0 in a message: at least 1, 0 and 0");
}

// ---- steps with a flaw: what they would do is not defined

std::string refusal_of(const Step& step, Shape shape = {}) {
  const Schedule schedule{.problem = {.collective = Collective::all_reduce, .ranks = 3},
                          .name = "made",
                          .shape = shape,
                          .step_count = [](int) { return 1; },
                          .step = [step](int, int) { return step; },
                          .cost = {},
                          .least_slots = {}};
  return refusal(schedule, request_for(1, 1), Code::invalid_argument);
}

TEST(Bind, ARankSetOutOfRangeIsRefused) {
  const std::string where = "all_reduce made on 3 ranks: rank 1 step 0: ";
  const std::string rule = ", on 3 ranks: first and stride are 0 to 2, n is 0 to 3";
  EXPECT_EQ(refusal_of(signal({.first = 0, .stride = 150001, .n = 2}, 1)),
            where + "SIGNAL to the ranks {first 0, stride 150001, n 2}" + rule);
  EXPECT_EQ(refusal_of(signal({.first = 0, .stride = 3, .n = 2}, 1)),
            where + "SIGNAL to the ranks {first 0, stride 3, n 2}" + rule);
  EXPECT_EQ(refusal_of(signal({.first = 0, .stride = -1, .n = 2}, 1)),
            where + "SIGNAL to the ranks {first 0, stride -1, n 2}" + rule);
  EXPECT_EQ(refusal_of(wait(only(3), 1)), where + "WAIT for the ranks {first 3, stride 1, n 1}" + rule);
  EXPECT_EQ(refusal_of(wait(only(-1), 1)), where + "WAIT for the ranks {first -1, stride 1, n 1}" + rule);
  EXPECT_EQ(refusal_of(move({output(1, unit(0))}, {on({.first = 0, .stride = 1, .n = 4}, input(0, unit(0)))})),
            where + "a source on the ranks {first 0, stride 1, n 4}" + rule);
  EXPECT_EQ(refusal_of(move({output(7, unit(0))}, {input(1, unit(0))})),
            where + "a destination on the ranks {first 7, stride 1, n 1}" + rule);
  EXPECT_EQ(refusal_of(move({channel(3)}, {input(1, unit(0))})),
            where + "a destination on the ranks {first 3, stride 1, n 1}" + rule);
}

TEST(Bind, AnExposureThatTheShapeHidesIsRefused) {
  const std::string where = "all_reduce made on 3 ranks: rank 1 step 0: ";
  const Exposure of_input{.space = Space::input, .units = unit(0)};
  const Exposure of_output{.space = Space::output, .units = unit(0)};
  EXPECT_EQ(refusal_of(signal(only(0), 1, of_input), {.exposes_output = true}),
            where + "exposes the input, but the schedule's shape says that no rank does");
  EXPECT_EQ(refusal_of(signal(only(0), 1, {}, of_output), {.exposes_input = true}),
            where + "exposes the output, but the schedule's shape says that no rank does");
  EXPECT_EQ(refusal_of(signal(only(0), 1, {.space = Space::line, .units = unit(0)})),
            where + "exposes a channel or the flag line; only input, output and scratch can be");
}

TEST(Bind, AMoveThatIsNoneIsRefused) {
  const std::string where = "all_reduce made on 3 ranks: rank 1 step 0: ";
  EXPECT_EQ(refusal_of(move({output(1, unit(0))}, {})), where + "a MOVE needs a destination and a source");
  EXPECT_EQ(refusal_of(move({}, {input(1, unit(0))})), where + "a MOVE needs a destination and a source");
  EXPECT_EQ(refusal_of(move({output(1, unit(0))}, {on({.first = 0, .stride = 1, .n = 0}, input(0, unit(0)))})),
            where + "a source on no rank");
  EXPECT_EQ(refusal_of(move({on(others(1, 3), channel(2))}, {input(1, unit(0))})),
            where + "a destination is a channel to 2 ranks: it leads to one");
  EXPECT_EQ(refusal_of(move({on(only(1), {.space = Space::line})}, {input(1, unit(0))})),
            where + "a destination lies in the flag line, where only binding places scratch");
  EXPECT_EQ(refusal_of(move({output(1, unit(-1))}, {input(1, unit(0))})),
            where +
                "a destination has the units {start -1, length 1, stride 0, repeat 1}: none is below 0, nor repeat "
                "below 1, nor the last unit beyond 2^31");
}

TEST(Bind, APhaseThatAFlagCannotHoldIsRefused) {
  const std::string where = "all_reduce made on 3 ranks: rank 1 step 0: ";
  EXPECT_EQ(refusal_of(signal(only(0), 0)), where + "phase 0 is out of range: 1 to 65535");
  EXPECT_EQ(refusal_of(wait(only(0), 65536)), where + "phase 65536 is out of range: 1 to 65535");
}

}  // namespace
}  // namespace tutti
