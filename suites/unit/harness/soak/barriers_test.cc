// SPDX-License-Identifier: Apache-2.0
// The barrier's rule over an epoch: a rank that left before all had entered is found, whatever group it was in.
#include "harness/soak/barriers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::soak {
namespace {

using testing::HasSubstr;

class BarriersOfASoak : public testing::Test {
 protected:
  Mix mix_{1, 4, 4000};
  Runner runner_{Board(nullptr, 1), {.ranks = {0, 1, 2, 3}}};

  /// The first barrier of epoch 1 on a communicator.
  [[nodiscard]] std::int64_t barrier_on(int communicator) const {
    auto [index, end] = mix_.epoch(1);
    while (index < end && !(mix_.is_barrier(index) && mix_.communicator_at(index) == communicator)) ++index;
    EXPECT_LT(index, end);
    return index;
  }
};

TEST_F(BarriersOfASoak, HoldWhereTheFirstLeavesAfterTheLastHasEntered) {
  EpochBarriers barriers(mix_, 1);
  const std::int64_t index = barrier_on(0);
  barriers.add(index, 0, {.first_leave_ns = 40, .last_enter_ns = 10});
  barriers.add(index, 1, {.first_leave_ns = 31, .last_enter_ns = 30});
  const auto verdict = barriers.judge(runner_);
  ASSERT_TRUE(verdict.is_ok());
  EXPECT_EQ(verdict.value().judged, 1) << "nobody was in the others";
  EXPECT_EQ(verdict.value().wrong, 0);
}

TEST_F(BarriersOfASoak, AreWrongWhereSomebodyLeavesBeforeTheLastHasEntered) {
  EpochBarriers barriers(mix_, 1);
  const std::int64_t index = barrier_on(3);
  barriers.add(index, 0, {.first_leave_ns = 20, .last_enter_ns = 10});
  barriers.add(index, 2, {.first_leave_ns = 40, .last_enter_ns = 30});
  const auto verdict = barriers.judge(runner_);
  ASSERT_TRUE(verdict.is_ok());
  EXPECT_EQ(verdict.value().wrong, 1);
  EXPECT_EQ(
      verdict.value().first_wrong,
      fmt::format("operation {} (barrier): a rank left the barrier 10 ns before the last one had entered", index));
}

TEST_F(BarriersOfASoak, OfASplitAreOneForEachColour) {
  EpochBarriers barriers(mix_, 1);
  const std::int64_t index = barrier_on(1);
  barriers.add(index, 0, {.first_leave_ns = 20, .last_enter_ns = 10});
  barriers.add(index, 1, {.first_leave_ns = 40, .last_enter_ns = 30});  // the odd ranks meet later
  barriers.add(index, 2, {.first_leave_ns = 21, .last_enter_ns = 11});
  const auto verdict = barriers.judge(runner_);
  ASSERT_TRUE(verdict.is_ok());
  EXPECT_EQ(verdict.value().judged, 2);
  EXPECT_EQ(verdict.value().wrong, 0) << verdict.value().first_wrong;
}

}  // namespace
}  // namespace tutti::harness::soak
