// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/order.h"

#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::measure {
namespace {

using testing::HasSubstr;

constexpr int kOrderRanks = 3;
constexpr std::uint64_t kSeeds = 200;

/// Ranks that may go on until they have taken `steps` steps, each by its own.
struct Walkers {
  explicit Walkers(int steps) : left(kOrderRanks, steps) {}

  Status drive(Order& order) {
    return order.drive({.step = [&](std::size_t index) -> Result<bool> {
                          taken += static_cast<char>('0' + index);
                          if (waits && waits(index)) return false;
                          if (order.holds_back()) return false;
                          order.went_on();
                          return --left[index] == 0;
                        },
                        .position = [](std::size_t index) { return "rank " + std::to_string(index) + " waits"; },
                        .look_around = [] { return Status(); }});
  }

  std::vector<int> left;
  std::string taken;
  std::function<bool(std::size_t)> waits;
};

std::string steps_of(std::uint64_t seed, const std::string& what = "") {
  Order order(seed, kOrderRanks);
  order.begin(what);
  Walkers walkers(20);
  EXPECT_TRUE(walkers.drive(order).is_ok());
  return walkers.taken;
}

TEST(Order, IsTheSameForTheSameSeed) {
  std::set<std::string> all;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::string steps = steps_of(seed);
    EXPECT_EQ(steps, steps_of(seed));
    all.insert(steps);
  }
  EXPECT_GT(all.size(), kSeeds / 2);
}

TEST(Order, OfACaseDoesNotDependOnWhatRanBefore) {
  Order order(7, kOrderRanks);
  Walkers before(50);
  ASSERT_TRUE(before.drive(order).is_ok());
  order.begin("a case");
  Walkers walkers(20);
  ASSERT_TRUE(walkers.drive(order).is_ok());
  EXPECT_EQ(walkers.taken, steps_of(7, "a case"));
  EXPECT_NE(walkers.taken, steps_of(7, "another case"));
}

TEST(Order, SaysWhichStepsItTook) {
  const auto trace_of = [](std::uint64_t seed) {
    Order order(seed, kOrderRanks);
    Walkers walkers(20);
    EXPECT_TRUE(walkers.drive(order).is_ok());
    EXPECT_EQ(order.steps(), walkers.taken.size());
    return order.trace();
  };
  EXPECT_EQ(trace_of(3), trace_of(3));
  EXPECT_NE(trace_of(3), trace_of(4));
}

TEST(Order, LetsEveryRankBeTheFirstAndTheLastOfAll) {
  std::set<char> first, last, alone;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::string steps = steps_of(seed);
    first.insert(steps.front());
    last.insert(steps.back());
    // Until all others are done a starved rank takes no step.
    const char latest = steps.back();
    if (steps.find(latest) >= 40) alone.insert(latest);
  }
  EXPECT_EQ(first, (std::set<char>{'0', '1', '2'}));
  EXPECT_EQ(last, first);
  EXPECT_EQ(alone, first) << "ranks that took their first step when the others were done";
}

TEST(Order, StopsRanksWhoseWaitIsOver) {
  bool has_held = false, has_let_go = false;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    has_held |= steps_of(seed).size() > 20 * kOrderRanks;
    has_let_go |= steps_of(seed).size() == 20 * kOrderRanks;
  }
  EXPECT_TRUE(has_held);
  EXPECT_TRUE(has_let_go) << "not every order does so";
}

TEST(Order, EndsAtOnceWhereNoRankCanGoOn) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Order order(seed, kOrderRanks);
    Walkers walkers(20);
    walkers.waits = [&](std::size_t index) { return index != 1; };
    const Status status = walkers.drive(order);
    EXPECT_EQ(status.code(), Code::timeout);
    EXPECT_THAT(std::string(status.message()), HasSubstr("no rank can go on; rank 0 waits"));
    EXPECT_EQ(walkers.left[1], 0) << "who could go on did";
  }
}

TEST(Order, GoesOnWhereRanksWaitForEachOther) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Order order(seed, kOrderRanks);
    Walkers walkers(20);
    // The last rank goes first in every round; another one only after the one behind it.
    walkers.waits = [&](std::size_t index) {
      return index == kOrderRanks - 1 ? walkers.left[index] < walkers.left[0]
                                      : walkers.left[index] <= walkers.left[index + 1];
    };
    EXPECT_TRUE(walkers.drive(order).is_ok()) << seed;
  }
}

}  // namespace
}  // namespace tutti::harness::measure
