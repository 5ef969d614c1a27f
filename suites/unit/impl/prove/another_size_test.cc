// SPDX-License-Identifier: Apache-2.0
// Plans that are others in another size: recognised, and only then not executed once more.
#include "impl/prove/another_size.h"

#include <algorithm>
#include <functional>

#include <gmock/gmock.h>

#include "suites/unit/impl/prove/open_plans.h"
#include "suites/unit/impl/prove/programs.h"

namespace tutti {
namespace {

/// One schedule bound to a line per unit, and to another size.
class Sizes {
 public:
  Sizes(const Schedule& schedule, Count elements_per_block, Buffers buffers = Buffers::shared, bool is_in_place = false)
      : schedule_(schedule),
        lines_(request_for(schedule_, buffers, is_in_place)),
        other_(lines_),
        of_lines_(bind_all(schedule_, lines_)) {
    other_.count = elements_per_block;
    of_other = bind_all(schedule_, other_);
  }

  [[nodiscard]] PlanSet lines(int slots = 64) const { return set_of(schedule_, of_lines_, lines_, slots); }
  [[nodiscard]] PlanSet other(int slots = 64) const { return set_of(schedule_, of_other, other_, slots); }
  [[nodiscard]] bool are_same() const { return is_in_another_size(other(), lines()); }
  /// Of the other size, given the proof of lines.
  [[nodiscard]] Proof proof_of_other() const {
    const Proof proof = prove_plans(lines());
    EXPECT_TRUE(proof.holds());
    const Proved proved{.set = lines(), .labels = proof.labels};
    return prove_plans(other(), &proved);
  }

 private:
  Schedule schedule_;
  BindRequest lines_;
  BindRequest other_;
  std::vector<Plan> of_lines_;

 public:
  std::vector<Plan> of_other;
};

Sizes one_element(Collective collective, std::string_view name) { return {schedule_for(collective, name, 5), 1}; }

TEST(AnotherSize, ABlockOfOneElementIsOneOfALine) {
  EXPECT_TRUE(one_element(Collective::all_gather, "ring").are_same());
  EXPECT_TRUE(one_element(Collective::all_to_all, "linear").are_same());
  EXPECT_TRUE(one_element(Collective::all_gather, "direct").are_same());
}

TEST(AnotherSize, MoreLinesAreTheSameWithoutChannelsAlone) {
  EXPECT_TRUE(Sizes(schedule_for(Collective::all_gather, "direct", 5), 32).are_same());
  EXPECT_FALSE(Sizes(schedule_for(Collective::all_gather, "ring", 5), 32).are_same()) << "two slices";
}

TEST(AnotherSize, UnitsThatStayEmptyAreNot) {
  EXPECT_FALSE(one_element(Collective::all_reduce, "two_shot").are_same());
  EXPECT_FALSE(one_element(Collective::all_reduce, "ring").are_same());
}

TEST(AnotherSize, WhatIsSaidToBeTheSameProvesTheSame) {
  int same = 0;
  for (const Algorithm* algorithm : all_algorithms()) {
    for (const int ranks : {1, 2, 3, 5, 8}) {
      for (const bool is_in_place : {false, true}) {
        for (const Buffers buffers : {Buffers::shared, Buffers::private_}) {
          const Schedule schedule = schedule_of(*algorithm, {.collective = algorithm->collective, .ranks = ranks});
          if (!has_data(algorithm->collective)) continue;
          for (const Count count : {Count{1}, Count{4} * 16 * schedule.shape.units_per_block}) {
            const Sizes sizes(schedule, count, buffers, is_in_place);
            if (!sizes.are_same()) continue;
            ++same;
            const Proof executed = prove_plans(sizes.other());
            const Proof taken = sizes.proof_of_other();
            EXPECT_TRUE(executed.holds() && taken.holds()) << schedule.name;
            EXPECT_EQ(executed.labels, taken.labels) << schedule.name << " " << ranks;
          }
        }
      }
    }
  }
  EXPECT_GT(same, 100);
}

TEST(AnotherSize, ABrokenPlanIsNotTakenForAnotherSize) {
  const auto expect_refuted = [](const Sizes& good, const std::function<void(OpenPlan&)>& change) {
    Sizes sizes = good;
    ASSERT_TRUE(sizes.are_same());
    OpenPlan plan(sizes.of_other[1]);
    change(plan);
    sizes.of_other[1] = plan.closed();
    EXPECT_FALSE(sizes.are_same());
    EXPECT_FALSE(sizes.proof_of_other().holds());
  };
  const Sizes ring = one_element(Collective::all_gather, "ring");
  expect_refuted(ring, [](OpenPlan& plan) { plan.operands[plan.ops[2].first_operand].offset += 4; });
  expect_refuted(ring, [](OpenPlan& plan) { plan.operands[plan.ops[1].first_operand].ranks.first = 3; });
  expect_refuted(ring, [](OpenPlan& plan) { plan.ops[2].bytes = 3; });
  expect_refuted(ring, [](OpenPlan& plan) { plan.ops[2].rest_bytes = 8; });
  expect_refuted(ring, [](OpenPlan& plan) { plan.ops[2].marks &= static_cast<std::uint8_t>(~mark_closes); });
  expect_refuted(ring, [](OpenPlan& plan) { plan.ops.pop_back(); });
  const Sizes direct = one_element(Collective::all_gather, "direct");
  const auto first = [](OpenPlan& plan, Verb verb) {
    return std::find_if(plan.ops.begin(), plan.ops.end(), [verb](const PlanOp& op) { return op.verb == verb; });
  };
  expect_refuted(direct, [&](OpenPlan& plan) { first(plan, Verb::wait)->phase = 7; });
  expect_refuted(direct,
                 [&](OpenPlan& plan) { plan.operands[first(plan, Verb::wait)->first_operand].ranks.first = 1; });
  expect_refuted(direct, [](OpenPlan& plan) { plan.exposures.pop_back(); });
  expect_refuted(direct, [](OpenPlan& plan) { plan.exposures.back().bytes = 2; });
}

TEST(AnotherSize, FewerSlotsAreExecuted) {
  const Sizes ring = one_element(Collective::all_gather, "ring");
  EXPECT_TRUE(is_in_another_size(ring.other(3), ring.lines(3)));
  EXPECT_FALSE(is_in_another_size(ring.other(1), ring.lines(3)));
}

}  // namespace
}  // namespace tutti
