// SPDX-License-Identifier: Apache-2.0
// Large sets of ranks as wholes, against the same pair by pair.
#include "impl/prove/rank_arcs.h"

#include <random>
#include <set>

#include <gmock/gmock.h>

namespace tutti::steps {
namespace {

using testing::ElementsAre;

TEST(RankArcs, AreThoseOfASetAroundTheLastRankWithoutOne) {
  const auto arcs_of = [](const RankSet& set, int without) {
    std::vector<std::pair<int, int>> arcs;
    for_arcs(set, 8, without, [&](RankArc arc) { arcs.emplace_back(arc.begin, arc.end); });
    return arcs;
  };
  EXPECT_THAT(arcs_of({.first = 2, .stride = 1, .n = 3}, -1), ElementsAre(std::pair(2, 5)));
  EXPECT_THAT(arcs_of({.first = 6, .stride = 1, .n = 4}, -1), ElementsAre(std::pair(6, 8), std::pair(0, 2)));
  EXPECT_THAT(arcs_of({.first = 6, .stride = 1, .n = 4}, 7), ElementsAre(std::pair(6, 7), std::pair(0, 2)));
  EXPECT_THAT(arcs_of(everyone(8), 3), ElementsAre(std::pair(0, 3), std::pair(4, 8)));
  EXPECT_THAT(arcs_of({.first = 5, .stride = 1, .n = 0}, -1), ElementsAre());
}

TEST(RankSums, AreOverAnyArc) {
  RankSums<int> sums(7);
  std::vector<int> values(7);
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    const int rank = static_cast<int>(random() % 7), by = static_cast<int>(random() % 9) - 4;
    sums.add(rank, by);
    values[static_cast<std::size_t>(rank)] += by;
    const int begin = static_cast<int>(random() % 8), end = begin + static_cast<int>(random() % (8U - begin));
    int sum = 0;
    for (int at = begin; at < end; ++at) sum += values[static_cast<std::size_t>(at)];
    EXPECT_EQ(sums.over({begin, end}), sum);
  }
}

TEST(Coverage, FindsWhatWasTakenAndNotGiven) {
  constexpr int kRanks = 11;
  std::mt19937 random(2);
  const auto draw = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  int uncovered = 0;
  for (int trial = 0; trial < 300; ++trial) {
    Coverage coverage(kRanks);
    std::set<std::pair<int, int>> given;
    for (int giver = 0; giver < kRanks; ++giver) {
      const RankSet to{.first = draw(kRanks), .stride = draw(4) == 0 ? 3 : 1, .n = 1 + draw(kRanks - 1)};
      if (draw(8) == 0) continue;
      coverage.give(giver, to);
      for (int i = 0; i < to.n; ++i) given.emplace(giver, to.at(i, kRanks));
    }
    std::set<std::size_t> is, should_be;
    for (std::size_t id = 0; id < 40; ++id) {
      const int taker = draw(kRanks), begin = draw(kRanks), end = begin + 1 + draw(std::min(3, kRanks - begin));
      coverage.take(taker, {begin, end}, id);
      for (int giver = begin; giver < end; ++giver) {
        if (!given.contains({giver, taker})) should_be.insert(id);
      }
    }
    coverage.for_uncovered([&](std::size_t id) { is.insert(id); });
    EXPECT_EQ(is, should_be);
    uncovered += static_cast<int>(is.size());
  }
  EXPECT_GT(uncovered, 1000);
}

TEST(PhaseBoard, KnowsTheLatestOfThoseThatSignalledAndTheFirstThatDidNot) {
  constexpr int kRanks = 13;
  PhaseBoard board(kRanks);
  EXPECT_EQ(board.latest({0, 1}), PhaseBoard::kNever);
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank != 4 && rank != 9) board.signal(rank, 100 - 7 * rank);
  }
  EXPECT_TRUE(board.has_signalled(3));
  EXPECT_FALSE(board.has_signalled(9));
  EXPECT_EQ(board.latest({0, 4}), 100);
  EXPECT_EQ(board.latest({5, 9}), 65);
  EXPECT_EQ(board.latest({5, 10}), PhaseBoard::kNever);
  EXPECT_EQ(board.first_missing({5, 13}), 9);
  EXPECT_EQ(board.first_missing({0, 13}), 4);
  EXPECT_EQ(board.first_missing({9, 13}), 9);
  board.signal(9, 200);
  EXPECT_EQ(board.latest({5, 13}), 200);
}

}  // namespace
}  // namespace tutti::steps
