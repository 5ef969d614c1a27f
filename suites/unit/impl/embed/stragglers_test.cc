// SPDX-License-Identifier: Apache-2.0
#include "impl/embed/stragglers.h"

#include <array>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::embed {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;

/// Four ranks and `operations` of 100 us; rank `late` came last to `last` of them, by `by`.
Arrivals four_ranks(int operations, int late, int last, double by) {
  Arrivals arrivals;
  for (int i = 0; i < operations; ++i) {
    std::array<double, 4> came{};
    came[static_cast<std::size_t>(i < last ? late : i % 4)] = i < last ? by : 3;
    arrivals.add(came, 100);
  }
  return arrivals;
}

TEST(Arrivals, TheLastRankIsCountedWithTheMeanWaitOfTheOthers) {
  Arrivals arrivals;
  arrivals.add(std::array{0.0, 30.0, 10.0, 20.0}, 100);
  arrivals.add(std::array{7.0, 1.0, 1.0, 1.0}, 50);
  EXPECT_EQ(arrivals.operations, 2);
  EXPECT_DOUBLE_EQ(arrivals.time, 150);
  EXPECT_THAT(arrivals.ranks, ElementsAre(Field(&RankArrivals::last, 1), Field(&RankArrivals::last, 1),
                                          Field(&RankArrivals::last, 0), Field(&RankArrivals::last, 0)));
  EXPECT_DOUBLE_EQ(arrivals.ranks[1].waited, 20);
  EXPECT_DOUBLE_EQ(arrivals.ranks[0].waited, 6);
}

TEST(Arrivals, WithinWhatIsApartNoRankIsLast) {
  Arrivals arrivals;
  EXPECT_FALSE(arrivals.add(std::array{0.0, 2.0}, 10, 2.0));
  EXPECT_EQ(arrivals.ranks[1].last, 0);
  const auto last = arrivals.add(std::array{0.0, 2.1}, 10, 2.0);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->rank, 1);
  EXPECT_DOUBLE_EQ(last->waited, 2.1);
  EXPECT_EQ(arrivals.ranks[1].last, 1);
  EXPECT_EQ(arrivals.operations, 2);
}

TEST(Arrivals, OfOneRankHaveNoLast) {
  Arrivals arrivals;
  arrivals.add(std::array{5.0}, 10);
  EXPECT_EQ(arrivals.ranks.front().last, 0);
  EXPECT_FALSE(stragglers_of(arrivals).front().is_one);
  EXPECT_TRUE(stragglers_of({}).empty());
}

TEST(Arrivals, OfSeveralCellsAddUp) {
  Arrivals all;
  all.add(Arrivals{});
  all.add(four_ranks(8, 2, 4, 10));
  all.add(four_ranks(8, 2, 8, 10));
  EXPECT_EQ(all.operations, 16);
  EXPECT_DOUBLE_EQ(all.time, 1600);
  EXPECT_EQ(all.ranks[2].last, 13);
  EXPECT_DOUBLE_EQ(all.ranks[2].waited, 123);
}

TEST(Stragglers, OneIsLastTooOftenAndCostsTime) {
  const std::vector<Straggler> found = stragglers_of(four_ranks(100, 2, 60, 10));
  EXPECT_EQ(found.front().rank, 2);
  EXPECT_EQ(found.front().last, 70);
  EXPECT_DOUBLE_EQ(found.front().share, 0.063);
  EXPECT_TRUE(found.front().is_one);
  EXPECT_THAT(found, ElementsAre(Field(&Straggler::is_one, true), Field(&Straggler::is_one, false),
                                 Field(&Straggler::is_one, false), Field(&Straggler::is_one, false)));
}

TEST(Stragglers, ThereIsNoneWhereRanksTakeTurns) {
  for (const Straggler& one : stragglers_of(four_ranks(1000, 0, 0, 0))) EXPECT_FALSE(one.is_one) << one.rank;
}

TEST(Stragglers, OneThatIsLastOftenAndCostsNothingIsNone) {
  const std::vector<Straggler> found = stragglers_of(four_ranks(100, 2, 100, 2));
  EXPECT_EQ(found.front().last, 100);
  EXPECT_LT(found.front().chance, 1e-9);
  EXPECT_FALSE(found.front().is_one);  // 2 % is not above 2 %
  EXPECT_TRUE(stragglers_of(four_ranks(100, 2, 100, 2.1)).front().is_one);
}

TEST(Stragglers, OneThatCostsMuchAndIsSeldomLastIsNone) {
  const std::vector<Straggler> found = stragglers_of(four_ranks(100, 2, 8, 80));
  EXPECT_EQ(found.front().rank, 2);
  EXPECT_GT(found.front().share, kStragglerShare);
  EXPECT_FALSE(found.front().is_one);
}

TEST(Stragglers, TwoAreFoundSideBySide) {
  Arrivals arrivals = four_ranks(100, 1, 100, 10);
  arrivals.add(four_ranks(100, 3, 100, 20));
  const std::vector<Straggler> found = stragglers_of(arrivals);
  EXPECT_THAT(found, ElementsAre(Field(&Straggler::rank, 3), Field(&Straggler::rank, 1), Field(&Straggler::rank, 0),
                                 Field(&Straggler::rank, 2)));
  EXPECT_TRUE(found[0].is_one && found[1].is_one);
}

// The literals are sums of exact fractions.
TEST(BinomialTail, IsExact) {
  EXPECT_DOUBLE_EQ(binomial_tail(10, 10, 0.5), 0.0009765625);
  EXPECT_NEAR(binomial_tail(10, 9, 0.5), 0.0107421875, 1e-15);
  EXPECT_NEAR(binomial_tail(1000, 540, 0.5), 0.00622207313858589, 1e-13);
  EXPECT_NEAR(binomial_tail(1000, 400, 0.5), 0.9999999999099158, 1e-13);
  EXPECT_NEAR(binomial_tail(8, 2, 0.25), 0.6329193115234375, 1e-14);
  EXPECT_NEAR(binomial_tail(1000, 612, 0.125) / 2.0119485614478842e-287, 1, 1e-9);
}

TEST(BinomialTail, AtItsEnds) {
  EXPECT_EQ(binomial_tail(5, 0, 0.5), 1);
  EXPECT_EQ(binomial_tail(0, 0, 0.5), 1);
  EXPECT_EQ(binomial_tail(0, 1, 0.5), 0);
  EXPECT_EQ(binomial_tail(5, 6, 0.5), 0);
  EXPECT_EQ(binomial_tail(5, 5, 1), 1);
  EXPECT_EQ(binomial_tail(5, 1, 0), 0);
}

}  // namespace
}  // namespace tutti::embed
