// SPDX-License-Identifier: Apache-2.0
#include "impl/execute/slow.h"

#include <array>

#include <gtest/gtest.h>

namespace tutti {
namespace {

PlanOperand mine() {
  PlanOperand operand{};
  operand.is_mine = true;
  return operand;
}
PlanOperand of_ranks(int first, int n) {
  PlanOperand operand{};
  operand.ranks = {.first = first, .stride = 1, .n = n};
  return operand;
}
PlanOp move(int destinations, int sources) {
  PlanOp op{};
  op.destinations = static_cast<decltype(op.destinations)>(destinations);
  op.sources = static_cast<decltype(op.sources)>(sources);
  return op;
}

TEST(Slow, ASlowRankIsSlowInEveryMove) {
  const std::array operands{mine(), mine()};
  EXPECT_DOUBLE_EQ(added_share({.percent = 20}, move(1, 1), operands.data(), 4), 0.2);
}

TEST(Slow, ASlowLinkIsSlowByWhatGoesOverIt) {
  const Slowness link{.peer = 2, .peer_percent = 30};
  const std::array local{mine(), mine()};
  EXPECT_DOUBLE_EQ(added_share(link, move(1, 1), local.data(), 4), 0);
  const std::array from_peer{mine(), of_ranks(2, 1)};
  EXPECT_DOUBLE_EQ(added_share(link, move(1, 1), from_peer.data(), 4), 0.15) << "one of two operands";
  const std::array from_another{mine(), of_ranks(1, 1)};
  EXPECT_DOUBLE_EQ(added_share(link, move(1, 1), from_another.data(), 4), 0);
  const std::array from_all{mine(), of_ranks(3, 4)};  // 3 0 1 2
  EXPECT_DOUBLE_EQ(added_share(link, move(1, 1), from_all.data(), 4), 0.3 / 5);
}

TEST(Slow, BothAddUp) {
  const std::array operands{of_ranks(1, 1), of_ranks(1, 1)};
  EXPECT_DOUBLE_EQ(added_share({.percent = 10, .peer = 1, .peer_percent = 20}, move(1, 1), operands.data(), 2), 0.3);
}

/// Counts what it is asked for.
struct CountingMachine {
  int moves = 0;
  int announced = 0;
  [[nodiscard]] bool heard(int, std::uint16_t) { return true; }
  [[nodiscard]] bool channels_ready(const PlanOp&, const PlanOperand*) { return true; }
  void announce(const PlanOp&, const PlanOperand*) { ++announced; }
  void move(const PlanOp&, const PlanOperand*) { ++moves; }
  void close_channels(const PlanOp&, const PlanOperand*) {}
};

TEST(Slow, TheMachineMovesOnceWhateverItTakes) {
  CountingMachine machine;
  const Slowness slow{.percent = 1000};
  Slowed slowed(machine, slow, 2);
  const std::array operands{mine(), mine()};
  slowed.move(move(1, 1), operands.data());
  slowed.announce(move(0, 0), operands.data());
  EXPECT_EQ(machine.moves, 1);
  EXPECT_EQ(machine.announced, 1);
  EXPECT_TRUE(slowed.heard(1, 1));
}

}  // namespace
}  // namespace tutti
