// SPDX-License-Identifier: Apache-2.0
// Counts whose bytes exceed 2^31 and 2^32, through binding and the prover: arithmetic alone, no such memory is touched.
#include <algorithm>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/unit/impl/prove/programs.h"

namespace tutti::offsets {
namespace {

constexpr int kRanks = 3;
constexpr std::int64_t kGiB = std::int64_t{1} << 30;
/// Elements of two bytes each: a block is a little above 2^31 and 2^32 bytes.
constexpr Count kCounts[] = {(Count{1} << 30) + 7, (Count{1} << 31) + 7};
constexpr std::int64_t kElementBytes = 2;

/// Slots and scratch of any size, so that a call is one segment and a message one slice.
constexpr Resources kEndless{.slots = 64, .slot_bytes = 16 * kGiB, .scratch_bytes = 4096 * kGiB};
/// So few that a call is many slices and segments: fewer than with those that a communicator has, so that it is quick.
constexpr Resources kFew{.slots = 8, .slot_bytes = kGiB / 16, .scratch_bytes = kGiB / 4};

BindRequest request_of(const Schedule& schedule, Count count, const Resources& resources, Buffers buffers,
                       bool is_in_place) {
  const Collective collective = schedule.problem.collective;
  const Op op = takes_op(collective, Op::avg) ? Op::avg : Op::sum;
  return {.count = count,
          .dtype = Dtype::bf16,
          .op = is_reducing(collective) ? op : Op::none,
          .is_in_place = is_in_place,
          .buffers = buffers,
          .resources = resources};
}

template <class F>
void on_every_algorithm(F f) {
  for (const Algorithm* algorithm : all_algorithms()) {
    if (!has_data(algorithm->collective)) continue;
    const Problem problem{.collective = algorithm->collective, .ranks = kRanks, .root = kRanks - 1};
    Problem rootless = problem;
    if (!is_rooted(problem.collective)) rootless.root = 0;
    SCOPED_TRACE(testing::Message() << to_string(problem.collective) << " " << algorithm->name);
    f(schedule_of(*algorithm, rootless));
  }
}

TEST(Offsets, OfEveryAlgorithmAreProvedBeyondTwoToThe31AndTwoToThe32) {
  on_every_algorithm([](const Schedule& schedule) {
    for (const Count count : kCounts) {
      for (const Resources& resources : {kEndless, kFew}) {
        for (const Buffers buffers : {Buffers::private_, Buffers::shared}) {
          for (const bool is_in_place : {false, true}) {
            EXPECT_EQ(findings_of(schedule, request_of(schedule, count, resources, buffers, is_in_place)), "") << count;
          }
        }
      }
    }
  });
}

/// The last byte of the user's buffers that a plan touches.
std::int64_t end_of(const Plan& plan) {
  std::int64_t end = 0;
  for (const PlanOp& op : plan.ops()) {
    if (op.verb != Verb::move) continue;
    for (const auto& operands : {plan.destinations(op), plan.sources(op)}) {
      for (const PlanOperand& operand : operands) {
        if (operand.space == Space::input || operand.space == Space::output)
          end = std::max(end, operand.offset + op.bytes);
      }
    }
  }
  return end;
}

TEST(Offsets, OfPlansReachTheEndOfTheUsersBuffers) {
  on_every_algorithm([](const Schedule& schedule) {
    for (const Count count : kCounts) {
      std::int64_t longest = 0, end = 0;
      for (int rank = 0; rank < kRanks; ++rank) {
        BindRequest request = request_of(schedule, count, kEndless, Buffers::shared, false);
        request.rank = rank;
        const auto call = bind(schedule, request);
        ASSERT_TRUE(call.is_ok()) << call.status().message();
        ASSERT_EQ(call.value().segments(), 1);
        longest = std::max(longest, buffer_bytes(schedule.problem, count, kElementBytes));
        end = std::max(end, end_of(call.value().plan(0)));
      }
      EXPECT_EQ(end, longest);
    }
  });
}

TEST(Offsets, OfSegmentsAddUpToTheWholeBlock) {
  on_every_algorithm([](const Schedule& schedule) {
    for (const Count count : kCounts) {
      BindRequest request = request_of(schedule, count, kFew, Buffers::private_, false);
      const auto bound = bind(schedule, request);
      ASSERT_TRUE(bound.is_ok()) << bound.status().message();
      const BoundCall& call = bound.value();
      const std::int64_t whole = count * kElementBytes;
      EXPECT_EQ(call.full_segments, whole / call.segment_bytes);
      EXPECT_EQ(call.has_tail, whole % call.segment_bytes > 0);
      EXPECT_GT((call.segments() - 1) * call.segment_bytes, whole - call.segment_bytes - 1);
      // Where blocks are apart, a segment's plan reaches over all of them.
      if (call.full_segments == 0 || call.full.header().output_bytes <= call.segment_bytes) continue;
      EXPECT_EQ(call.full.header().output_bytes, (kRanks - 1) * whole + call.segment_bytes);
    }
  });
}

TEST(Offsets, OfVFormsAreProvedWhereBlocksLieFarApart) {
  const std::vector<Count> counts{(Count{1} << 31) + 5, 3, (Count{1} << 30) + 1};
  const std::vector<Count> displacements{Count{1} << 33, 0, Count{1} << 32};
  const Division division{.counts = counts, .displacements = displacements};
  for (const Algorithm* algorithm : all_algorithms()) {
    if (!algorithm->takes_counts) continue;
    const Problem problem{.collective = algorithm->collective, .ranks = kRanks, .root = 0};
    SCOPED_TRACE(testing::Message() << to_string(problem.collective) << " " << algorithm->name);
    std::vector<BlockTable> tables;
    for (int rank = 0; rank < kRanks; ++rank) {
      // Of all_to_all_v rank r sends counts[r] to everybody.
      const std::vector<Count> mine(kRanks, counts[static_cast<std::size_t>(rank)]);
      const std::vector<Count> apart{0, Count{1} << 32, Count{1} << 33};
      const auto table = problem.collective == Collective::all_to_all
                             ? blocks_of(problem, {.counts = mine, .displacements = apart}, division, kElementBytes)
                             : blocks_of(problem, rank, division, kElementBytes);
      ASSERT_TRUE(table.is_ok()) << table.status().message();
      tables.push_back(table.value());
    }
    const Schedule schedule = schedule_of(*algorithm, problem);
    const auto proof = prove(schedule, request_of(schedule, 0, kEndless, Buffers::private_, false), tables);
    ASSERT_TRUE(proof.is_ok()) << proof.status().message();
    for (const Finding& finding : proof.value().findings) ADD_FAILURE() << to_string(finding);
  }
}

TEST(Offsets, ThatDoNotFit63BitsAreRefused) {
  const Schedule schedule = schedule_for(Collective::all_gather, "ring", kRanks);
  BindRequest request = request_of(schedule, Count{1} << 58, kEndless, Buffers::private_, false);
  const Status status = bind(schedule, request).status();
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_THAT(status.message(), testing::HasSubstr("count 288230376151711744 is out of range: 0 to "));
}

}  // namespace
}  // namespace tutti::offsets
