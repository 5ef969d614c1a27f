// SPDX-License-Identifier: Apache-2.0
// The real algorithms hold, in all forms; their labels; slots; segments; and faults that only a plan can have.
#include <map>

#include <gmock/gmock.h>

#include "suites/unit/impl/prove/open_plans.h"
#include "suites/unit/impl/prove/programs.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string text_of(const PlanSet& set) {
  std::string text;
  for (const Finding& finding : prove_plans(set).findings) text += to_string(finding) + "\n";
  return text;
}

TEST(ProveSchedule, EveryAlgorithmHoldsForEveryRankCountAndRoot) {
  for (const Algorithm* algorithm : all_algorithms()) {
    for (int ranks = 1; ranks <= 16; ++ranks) {
      for (int root = 0; root < (is_rooted(algorithm->collective) ? ranks : 1); ++root) {
        const Problem problem{.collective = algorithm->collective, .ranks = ranks, .root = root};
        const auto proof = prove_schedule(schedule_of(*algorithm, problem));
        EXPECT_TRUE(proof.is_ok()) << proof.status().message();
      }
    }
  }
}

TEST(ProveSchedule, ProvesEveryFormWithBothKindsOfBuffers) {
  for (const Algorithm* algorithm : all_algorithms()) {
    const Schedule schedule = schedule_of(*algorithm, {.collective = algorithm->collective, .ranks = 3});
    const auto proof = prove_schedule(schedule);
    ASSERT_TRUE(proof.is_ok()) << proof.status().message();
    bool takes_turns = false;
    for (int rank = 0; rank < 3; ++rank) {
      for (int index = 0; index < schedule.step_count(rank); ++index) {
        takes_turns |= schedule.step(rank, index).in_turn_with_next;
      }
    }
    const int with_factors = is_reducing(algorithm->collective) ? 2 : 0;
    const int with_counts = algorithm->takes_counts ? 2 : 0;
    const int with_longer_turns = takes_turns ? 2 : 0;
    EXPECT_EQ(proof.value().proofs, 3 * 2 * 2 + with_factors + with_counts + with_longer_turns) << algorithm->name;
  }
}

TEST(ProveSchedule, OnManyRanksFormsTakeTurns) {
  const auto proofs = [](Collective collective, const char* name, int ranks) {
    const auto proof = prove_schedule(schedule_for(collective, name, ranks));
    EXPECT_TRUE(proof.is_ok()) << proof.status().message();
    return proof.is_ok() ? proof.value().proofs : 0;
  };
  // Proved with both kinds of buffers each: one slice out of place; and one part out of place, or in place together
  // with one slice in place. The part is several slices, or a single element and a factor (of shared buffers alone) or
  // lengths.
  const std::map<int, int> all_in_turn{{2 + 2, 8}, {2 + 2 + 1, 8}, {2 + 2 + 2, 8}, {2 + 2 + 2 + 1, 8}};
  std::map<int, int> with_factors;
  std::map<int, int> with_lengths;
  for (int ranks = 65; ranks <= 96; ++ranks) {
    const int of_factors = proofs(Collective::all_reduce, "one_shot", ranks);
    ++with_factors[of_factors];
    ++with_lengths[proofs(Collective::gather, "linear", ranks)];
    EXPECT_TRUE(ranks % 8 != 0 || of_factors >= 2 + 2 + 2) << ranks << " ranks: not in place";
  }
  EXPECT_EQ(with_factors, all_in_turn);
  EXPECT_EQ(with_lengths, all_in_turn);
  constexpr int kAll = 3 * 2 * 2 + 2;
  for (const int ranks : {47, 48, 64, 128}) {
    EXPECT_EQ(proofs(Collective::all_reduce, "one_shot", ranks), kAll) << ranks << " ranks";
    EXPECT_EQ(proofs(Collective::gather, "linear", ranks), kAll) << ranks << " ranks";
  }
}

TEST(ProvePlans, CountTheFactorsOfPremulSum) {
  for (const char* name : {"ring", "one_shot", "two_shot"}) {
    const Schedule schedule = schedule_for(Collective::all_reduce, name, 3);
    BindRequest request = request_for(schedule);
    request.op = Op::premul_sum;
    std::vector<Plan> plans = bind_all(schedule, request);
    EXPECT_EQ(text_of(set_of(schedule, plans, request, 64)), "") << name;
    OpenPlan open(plans[1]);
    for (PlanOp& op : open.ops) op.marks &= static_cast<std::uint8_t>(~mark_scales);
    plans[1] = open.closed();
    EXPECT_THAT(text_of(set_of(schedule, plans, request, 64)),
                testing::HasSubstr("hold the contribution of rank 1 multiplied by 0 factors instead of 1"))
        << name;
  }
}

TEST(ProveSchedule, DerivesTheLabels) {
  struct Row {
    Collective collective;
    const char* name;
    Labels labels;
  };
  const std::vector<Row> rows{
      {Collective::all_reduce,
       "ring",
       {.least_slots = 2, .keeps_order = false, .same_bits = true, .synchronises = true, .sends_are_stable = true}},
      {Collective::all_reduce,
       "halving",
       {.least_slots = 1, .keeps_order = false, .same_bits = true, .synchronises = true, .sends_are_stable = false}},
      {Collective::all_reduce,
       "one_shot",
       {.least_slots = 0, .keeps_order = true, .same_bits = true, .synchronises = true, .sends_are_stable = true}},
      {Collective::all_reduce,
       "two_shot",
       {.least_slots = 0, .keeps_order = true, .same_bits = true, .synchronises = true, .sends_are_stable = true}},
      {Collective::broadcast,
       "knomial",
       {.least_slots = 1, .keeps_order = true, .same_bits = true, .synchronises = false, .sends_are_stable = true}},
      {Collective::all_to_all,
       "pairwise",
       {.least_slots = 1, .keeps_order = true, .same_bits = true, .synchronises = true, .sends_are_stable = true}},
  };
  for (const Row& row : rows) {
    const auto proof = prove_schedule(schedule_for(row.collective, row.name, 7));
    ASSERT_TRUE(proof.is_ok()) << proof.status().message();
    const Labels& labels = proof.value().labels;
    EXPECT_EQ(labels.least_slots, row.labels.least_slots) << row.name;
    EXPECT_EQ(labels.keeps_order, row.labels.keeps_order) << row.name;
    EXPECT_EQ(labels.same_bits, row.labels.same_bits) << row.name;
    EXPECT_EQ(labels.synchronises, row.labels.synchronises) << row.name;
    EXPECT_EQ(labels.sends_are_stable, row.labels.sends_are_stable) << row.name;
  }
}

TEST(ProveSchedule, OrderThatDiffersFromRankToRankIsNotTheSameBits) {
  Programs one_shot = programs_of(Collective::all_reduce, "one_shot", 4);
  for (int rank = 0; rank < 4; ++rank) {
    at(one_shot[rank], 3).sources = {on({.first = rank, .stride = 1, .n = 4}, scratch(0, unit(0)))};
  }
  const auto proof = prove_schedule(one_shot.schedule());
  ASSERT_TRUE(proof.is_ok()) << proof.status().message();
  EXPECT_FALSE(proof.value().labels.same_bits);
  EXPECT_FALSE(proof.value().labels.keeps_order);
}

// Slots of one line and a segment fixed by the test: the longest message is a whole number of slots.
TEST(Slots, DerivedSlotsAreEnoughAndOneLessIsRefused) {
  for (const Algorithm* algorithm : all_algorithms()) {
    for (const int ranks : {2, 3, 4, 5, 8}) {
      for (const int slices : {1, 4}) {
        const Schedule schedule = schedule_of(*algorithm, {.collective = algorithm->collective, .ranks = ranks});
        if (schedule.shape.largest_message == 0) continue;
        BindRequest request = request_for(schedule);
        request.count = request.segment = 16 * slices * schedule.shape.units_per_block;
        request.resources.slots = schedule.least_slots(schedule.shape.largest_message * slices);
        const std::vector<Plan> plans = bind_all(schedule, request);
        EXPECT_EQ(plans.front().header().slices, schedule.shape.largest_message * slices);
        EXPECT_EQ(text_of(set_of(schedule, plans, request, request.resources.slots)), "") << schedule.name;
        if (request.resources.slots > 1) {
          EXPECT_THAT(text_of(set_of(schedule, plans, request, request.resources.slots - 1)), HasSubstr("deadlock: "))
              << schedule.name;
        }
        request.rank = 0;
        --request.resources.slots;
        EXPECT_EQ(bind(schedule, request).status().code(), Code::resource) << schedule.name;
      }
    }
  }
}

TEST(Slots, OneTooFewStopsTheRing) {
  const Schedule ring = schedule_for(Collective::all_reduce, "ring", 3);
  const BindRequest request = request_for(ring);
  const std::vector<Plan> plans = bind_all(ring, request);
  EXPECT_THAT(text_of(set_of(ring, plans, request, 1)),
              StartsWith("rank 0 step 1: deadlock: with 1 slot per channel, none becomes free to rank 1"));
  EXPECT_EQ(derive_least_slots(set_of(ring, plans, request, 64)), 2);
}

TEST(Prove, HoldsForCountsThatDivideBadlyAndForSegments) {
  for (const Algorithm* algorithm : all_algorithms()) {
    for (const Count count : {Count{0}, Count{1}, Count{4}, Count{6}, Count{1023}, Count{5000}}) {
      for (const bool is_in_place : {false, true}) {
        for (const Buffers buffers : {Buffers::shared, Buffers::private_}) {
          const Schedule schedule = schedule_of(
              *algorithm,
              {.collective = algorithm->collective, .ranks = 5, .root = 3 * is_rooted(algorithm->collective)});
          BindRequest request = request_for(schedule, buffers, is_in_place);
          if (request.count == 0) continue;
          request.count = count;
          request.resources = {.slots = 8, .slot_bytes = 128, .scratch_bytes = 4096};
          EXPECT_EQ(findings_of(schedule, request), "")
              << schedule.name << " " << count << " " << to_string(buffers) << " " << is_in_place;
        }
      }
    }
  }
}

// Where a line for every unit is too long for the slots, the first units of a segment get one and the others are empty.
TEST(Prove, HoldsForSegmentsOfFewerLinesThanUnits) {
  for (const Algorithm* algorithm : all_algorithms()) {
    for (const int ranks : {33, 66, 130}) {
      const Schedule schedule = schedule_of(*algorithm, {.collective = algorithm->collective, .ranks = ranks});
      for (const Buffers buffers : {Buffers::shared, Buffers::private_}) {
        BindRequest request = request_for(schedule, buffers);
        if (request.count == 0) continue;
        // Mirrors of a block for each rank; nested algorithms also keep a unit for each cache.
        const int units = ranks + (algorithm->is_by_caches ? ranks / even_cache_width(schedule.problem) : 0);
        request.resources = {.slots = 8, .slot_bytes = 128, .scratch_bytes = 64 * units};
        const std::int64_t lines = 16;  // all that eight slots hold
        for (const Count count : {16 * lines + 3, 16 * lines, Count{2}}) {
          if (ranks > 100 && count != 16 * lines + 3) continue;  // a proof of this many ranks takes long
          request.count = count;
          EXPECT_EQ(findings_of(schedule, request), "") << schedule.name << " " << ranks << " " << count;
        }
      }
    }
  }
}

TEST(Prove, HoldsForHalvingOnManyRanks) {
  for (const int ranks : {200, 1100}) {
    const Schedule halving = schedule_for(Collective::all_reduce, "halving", ranks);
    BindRequest request = request_for(halving);
    request.count = 16 * 32 + 1;
    request.resources = {.slots = 8, .slot_bytes = 256, .scratch_bytes = 4096};
    const auto call = bind(halving, request);
    ASSERT_TRUE(call.is_ok()) << call.status().message();
    EXPECT_EQ(call.value().segments(), 1);  // a round's messages take turns
    EXPECT_EQ(findings_of(halving, request), "");
  }
}

TEST(Prove, EmptyMoveWithoutChannelIsAbsentFromThePlan) {
  const Schedule two_shot = schedule_for(Collective::all_reduce, "two_shot", 4);
  BindRequest request = request_for(two_shot);
  request.count = 1;  // of four units, all but the first are empty
  for (const Plan& plan : bind_all(two_shot, request)) {
    std::size_t moves = 0;
    for (const PlanOp& op : plan.ops()) moves += op.verb == Verb::move ? 1 : 0;
    EXPECT_EQ(moves, plan.header().rank == 0 ? 1U : 0U);
    EXPECT_EQ(plan.ops().size() - moves, 4U);  // synchronisation stays
  }
}

TEST(Prove, BytesOutsideTheSegmentAreOutOfBounds) {
  const Schedule direct = schedule_for(Collective::all_to_all, "direct", 2);
  const BindRequest request = request_for(direct);
  const std::vector<Plan> plans = bind_all(direct, request);
  PlanSet set = set_of(direct, plans, request, 1);
  EXPECT_EQ(text_of(set), "");
  set.block_bytes = 32;
  EXPECT_THAT(text_of(set), HasSubstr("rank 0 step 1: reads input bytes [0, 64) of rank 0, out of bounds"));
}

class BrokenPlan : public testing::Test {
 protected:
  void use(Collective collective, const char* name, int ranks) {
    schedule_ = schedule_for(collective, name, ranks);
    request_ = request_for(schedule_);
    plans_ = bind_all(schedule_, request_);
  }
  std::string findings() { return text_of(set_of(schedule_, plans_, request_, 64)); }

  Schedule schedule_;
  BindRequest request_;
  std::vector<Plan> plans_;
};

TEST_F(BrokenPlan, SliceLengthsThatDiffer) {
  use(Collective::all_reduce, "ring", 3);
  OpenPlan plan(plans_[1]);
  plan.ops[1].bytes = 32;
  plan.ops[1].rest_bytes = 32;
  plans_[1] = plan.closed();
  EXPECT_THAT(
      findings(),
      StartsWith(
          "rank 1 step 1: receives the last 32 bytes of a message from rank 0, which sends the last 64 in its step 0"));
}

TEST_F(BrokenPlan, SliceThatIsNeverClosed) {
  use(Collective::all_reduce, "ring", 3);
  OpenPlan plan(plans_[1]);
  plan.ops[4].marks &= static_cast<std::uint8_t>(~mark_closes);
  plans_[1] = plan.closed();
  EXPECT_THAT(findings(), HasSubstr("rank 1 step 4: ends within a slice that is never closed"));
  plan.ops[3].marks &= static_cast<std::uint8_t>(~mark_closes);
  plans_[1] = plan.closed();
  EXPECT_THAT(findings(), HasSubstr("rank 1 step 4: opens a slice within a slice"));
}

// The pieces of a slice are those of its slots: another channel has none that is open.
TEST_F(BrokenPlan, PieceOfASliceWithAnotherChannel) {
  schedule_ = schedule_for(Collective::all_to_all, "bruck", 5);
  request_ = request_for(schedule_);
  request_.resources.slot_bytes = 128;
  plans_ = bind_all(schedule_, request_);
  EXPECT_EQ(findings(), "");
  OpenPlan plan(plans_[1]);
  const auto piece = std::ranges::find_if(
      plan.ops, [](const PlanOp& op) { return op.has_channel != 0 && (op.marks & mark_opens) == 0; });
  ASSERT_NE(piece, plan.ops.end());
  PlanOperand& to = plan.operands[piece->first_operand];
  ASSERT_EQ(to.space, Space::channel);
  to.ranks.first = (to.ranks.first + 1) % 5;
  plans_[1] = plan.closed();
  EXPECT_THAT(findings(), StartsWith("rank 1 step 2: a piece of a slice has other channels than the slice"));
}

TEST_F(BrokenPlan, ScratchOutOfBounds) {
  use(Collective::all_reduce, "one_shot", 3);
  OpenPlan plan(plans_[2]);
  plan.header.scratch_bytes = 32;
  plans_[2] = plan.closed();
  EXPECT_THAT(findings(), HasSubstr("rank 2 step 0: writes scratch bytes [0, 64) of rank 2, out of bounds"));
}

TEST_F(BrokenPlan, UnpublishedExposure) {
  use(Collective::broadcast, "direct", 3);
  OpenPlan plan(plans_[0]);
  plan.ops[0].marks = 0;
  plans_[0] = plan.closed();
  EXPECT_THAT(findings(), StartsWith("rank 0 step 0: exposes a user buffer to rank 1 without publishing where it is"));
}

TEST_F(BrokenPlan, NoGenerationTaken) {
  use(Collective::all_reduce, "one_shot", 3);
  OpenPlan plan(plans_[1]);
  plan.header.uses_generation = false;
  plans_[1] = plan.closed();
  EXPECT_THAT(findings(), HasSubstr("rank 1 step 0: writes scratch in a plan that takes no generation"));
}

// The references to the exposed buffers lie there; a plan that a shape lied to would look like this.
TEST_F(BrokenPlan, ScratchInTheLineThatHoldsTheReferences) {
  Programs direct = programs_of(Collective::broadcast, "direct", 3);
  direct[0].insert(direct[0].begin() + 1, move({scratch(0, unit(0))}, {input(0, unit(0))}));
  direct[2].push_back(move({scratch(2, unit(0))}, {output(2, unit(0))}));
  direct.original.shape.scratch_units = 1;
  schedule_ = direct.schedule();
  request_ = request_for(schedule_);
  request_.count = 4;
  plans_ = bind_all(schedule_, request_);
  EXPECT_EQ(findings(), "");
  const auto into_line = [this](int rank, std::size_t op) {
    OpenPlan plan(plans_[static_cast<std::size_t>(rank)]);
    plan.operands[plan.ops[op].first_operand].space = Space::line;
    plans_[static_cast<std::size_t>(rank)] = plan.closed();
  };
  into_line(2, 3);
  EXPECT_EQ(findings(), "") << "rank 2 exposes nothing";
  into_line(0, 1);
  EXPECT_EQ(findings(),
            "rank 0 step 1: touches the flag line of rank 0, where the references to the buffers it exposes are\n");
}

TEST_F(BrokenPlan, RankSetsOutOfRange) {
  use(Collective::all_reduce, "one_shot", 3);
  const std::vector<Plan> whole = plans_;
  OpenPlan plan(plans_[1]);
  plan.operands[plan.ops[2].first_operand].ranks.stride = 150001;
  plans_[1] = plan.closed();
  EXPECT_EQ(findings(),
            "rank 1 step 2: the ranks {first 2, stride 150001, n 2}, on 3 ranks: first and stride are 0 to 2, n is 0 "
            "to 3\n");
  plans_ = whole;
  OpenPlan exposes(plans_[0]);
  exposes.exposures[0].target = 3;
  plans_[0] = exposes.closed();
  EXPECT_EQ(findings(), "rank 0 step 1: exposes memory to rank 3 of 3\n");
}

TEST_F(BrokenPlan, OperandsThatAreNone) {
  use(Collective::all_reduce, "ring", 3);
  const std::vector<Plan> whole = plans_;
  const auto expect = [&](const char* finding, auto change) {
    plans_ = whole;
    OpenPlan plan(plans_[1]);
    change(plan);
    plans_[1] = plan.closed();
    EXPECT_EQ(findings(), std::string("rank 1 step 1: ") + finding + "\n");
  };
  // CH(2) <- CH(0) op IN[0]
  expect("has operands beyond the plan's", [](OpenPlan& plan) { plan.ops[1].first_operand = 1000; });
  expect("a MOVE needs a destination and a source", [](OpenPlan& plan) { plan.ops[1].sources = 0; });
  expect("an operand on no rank", [](OpenPlan& plan) { plan.operands[plan.ops[1].first_operand + 2].ranks.n = 0; });
  expect("a channel to or from 2 ranks", [](OpenPlan& plan) { plan.operands[plan.ops[1].first_operand].ranks.n = 2; });
  expect("touches a channel, and is not marked so", [](OpenPlan& plan) { plan.ops[1].has_channel = 0; });
  expect("an operand of rank 2 is marked as this rank's own",
         [](OpenPlan& plan) { plan.operands[plan.ops[1].first_operand + 2].ranks.first = 2; });
  expect("moves -4 bytes", [](OpenPlan& plan) { plan.ops[1].bytes = -4; });
  expect("is marked for a shortcut that it cannot take", [](OpenPlan& plan) { plan.ops[1].shortcut = Shortcut::copy; });
}

TEST_F(BrokenPlan, PlansOfTwoCalls) {
  use(Collective::all_reduce, "one_shot", 3);
  OpenPlan plan(plans_[2]);
  plan.header.hash ^= 1;
  plans_[2] = plan.closed();
  EXPECT_EQ(findings(), "rank 2: the plan is of another call than rank 0's\n");
}

}  // namespace
}  // namespace tutti
