// SPDX-License-Identifier: Apache-2.0
#include "impl/communicator/store_choice.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

/// Walks one cycle on a machine where a segment costs `costs` in each way; the ways of the segments after the decision.
struct Cycle {
  int plain = 0;
  int streamed = 0;
};
Cycle walk(StoreChoice& choice, StoreCosts costs, StoreCosts worst) {
  Cycle after;
  for (int segment = 0; segment < StoreChoice::kCycle; ++segment) {
    if (segment >= StoreChoice::kDecision) ++(choice.streams() ? after.streamed : after.plain);
    choice.finish(costs[choice.streams() ? 1 : 0]);
    if (choice.is_due()) choice.decide(worst);
  }
  return after;
}

constexpr int kRest = StoreChoice::kCycle - StoreChoice::kDecision;

TEST(StoreChoice, BeginsPlainAndTriesBothWaysEquallyOften) {
  StoreChoice choice;
  EXPECT_FALSE(choice.streams());
  int streamed = 0;
  for (int segment = 0; choice.is_trial(); ++segment) {
    streamed += choice.streams() ? 1 : 0;
    choice.finish(1);
  }
  EXPECT_EQ(streamed, StoreChoice::kTrials);
  EXPECT_TRUE(choice.is_to_be_told());
}

TEST(StoreChoice, TakesTheFasterWayAndChangesItsMindWithTheMachine) {
  StoreChoice choice;
  Cycle cycle = walk(choice, {2, 1}, {2, 1});
  EXPECT_EQ(cycle.streamed, kRest);
  cycle = walk(choice, {1, 2}, {1, 2});
  EXPECT_EQ(cycle.plain, kRest);
}

TEST(StoreChoice, FollowsTheSlowestRankNotItself) {
  StoreChoice choice;
  EXPECT_EQ(walk(choice, {2, 1}, {2, 3}).plain, kRest);
}

TEST(StoreChoice, ThatIsFixedTriesNothing) {
  for (const bool streams : {false, true}) {
    StoreChoice choice;
    choice.fix(streams);
    for (int segment = 0; segment < 2 * StoreChoice::kCycle; ++segment) {
      EXPECT_FALSE(choice.is_trial() || choice.is_due() || choice.is_to_be_told());
      EXPECT_EQ(choice.streams(), streams);
      choice.finish(1);
    }
  }
}

TEST(StoreChoice, TheLeastOfTheCountedTrialsCounts) {
  StoreChoice choice;
  for (int segment = 0; segment < StoreChoice::kTrials; ++segment) {
    choice.finish(segment < StoreChoice::kUncounted ? 0.5F : static_cast<float>(10 - segment));
  }
  for (int segment = 0; segment < StoreChoice::kTrials; ++segment) choice.finish(7);
  EXPECT_EQ(choice.costs(), (StoreCosts{static_cast<float>(10 - (StoreChoice::kTrials - 1)), 7}));
}

}  // namespace
}  // namespace tutti
