// SPDX-License-Identifier: Apache-2.0
#include "harness/simulate/walk.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "impl/algorithms/algorithm.h"
#include "impl/collective/collective.h"

namespace tutti::harness::simulate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// One rank on each node. As in LogGP, `send` and `receive` are o, and m bytes take (m - first) G.
Machine loggp(double latency, double overhead, double gap, double per_byte, double first = 1) {
  const SizeTable wire = first > 0 ? SizeTable{{first, 0}, {first + 1, per_byte}} : SizeTable::line(0, per_byte);
  Machine machine;
  machine.model.far = {.latency = latency,
                       .gap = gap,
                       .send = SizeTable{{0, overhead}},
                       .receive = SizeTable{{0, overhead}},
                       .wire = wire};
  return machine;
}

/// The ranks below `rank` in a binomial tree, nearest first.
std::vector<int> children_of(int rank, int ranks) {
  std::vector<int> children;
  for (int bit = 1; bit < ranks && (rank & bit) == 0; bit *= 2) {
    if (rank + bit < ranks) children.push_back(rank + bit);
  }
  return children;
}

/// Made by hand, with no algorithm behind it.
Schedule binomial_reduce(int ranks) {
  Schedule schedule{.problem = {.collective = Collective::reduce, .ranks = ranks}, .name = "binomial"};
  schedule.step_count = [ranks](int rank) {
    return static_cast<int>(children_of(rank, ranks).size()) + (rank > 0 ? 1 : 0);
  };
  schedule.step = [ranks](int rank, int index) {
    const std::vector<int> children = children_of(rank, ranks);
    const Operand mine = index > 0 ? output(rank, unit(0)) : input(rank, unit(0));
    if (index == static_cast<int>(children.size())) return move({channel(rank & (rank - 1))}, {mine});
    return move({output(rank, unit(0))}, {channel(children[static_cast<std::size_t>(index)]), mine});
  };
  return schedule;
}

Schedule binomial_broadcast(int ranks) {
  Schedule schedule{.problem = {.collective = Collective::broadcast, .ranks = ranks}, .name = "binomial"};
  schedule.step_count = [ranks](int rank) { return static_cast<int>(children_of(rank, ranks).size()) + 1; };
  schedule.step = [ranks](int rank, int index) {
    if (index == 0)
      return move({output(rank, unit(0))}, {rank > 0 ? channel(rank & (rank - 1)) : input(rank, unit(0))});
    const std::vector<int> children = children_of(rank, ranks);
    return move({channel(*(children.rbegin() + index - 1))}, {output(rank, unit(0))});
  };
  return schedule;
}

Schedule named(Collective collective, std::string_view name, int ranks, int per_host = 0) {
  return schedule_of(*find_algorithm(collective, name).value(),
                     {.collective = collective, .ranks = ranks, .ranks_per_host = per_host});
}

double ns_of(const Schedule& schedule, double bytes, const Machine& machine, const WalkOptions& options = {}) {
  const auto prediction = walk(schedule, bytes, machine, options);
  EXPECT_TRUE(prediction.is_ok()) << prediction.status().message();
  return prediction.is_ok() ? prediction.value().ns : -1;
}

/// Source: the README of LogGOPSim, its example of a binomial tree.
TEST(Walk, IsExactOnLogGopSimsExample) {
  const Machine machine = loggp(2500, 1500, 1000, 6);
  for (const Order order : {Order::programs, Order::time}) {
    const auto prediction = walk(binomial_reduce(8), 1024, machine, {.order = order});
    ASSERT_TRUE(prediction.is_ok()) << prediction.status().message();
    EXPECT_THAT(prediction.value().finish, ElementsAre(34914, 1500, 13138, 1500, 24776, 1500, 13138, 1500));
    EXPECT_EQ(prediction.value().messages, 7U);
  }
}

/// What textbooks give for alpha = L + 2 o, beta = G and gamma for a byte that is reduced.
TEST(Walk, IsTheClosedFormOfFourAlgorithms) {
  Machine machine = loggp(1000, 300, 0, 0.1, 0);
  machine.model.reduce = SizeTable::line(0, 0.05);
  constexpr double kAlpha = 1600, kBeta = 0.1, kGamma = 0.05;
  for (const int ranks : {4, 16, 64, 256}) {
    const double rounds = std::bit_width(static_cast<unsigned>(ranks - 1)), others = ranks - 1;
    for (const double bytes : {8.0, 65536.0, 16777216.0}) {
      const double part = bytes / ranks;
      const auto expect = [&](const Schedule& schedule, double wanted) {
        EXPECT_NEAR(ns_of(schedule, bytes, machine) / wanted, 1, 1e-9)
            << schedule.name << " P=" << ranks << " " << bytes;
      };
      expect(named(Collective::all_reduce, "ring", ranks),
             2 * others * (kAlpha + part * kBeta) + others * part * kGamma);
      expect(named(Collective::all_reduce, "recursive_doubling", ranks), rounds * (kAlpha + bytes * (kBeta + kGamma)));
      expect(named(Collective::all_reduce, "halving", ranks),
             2 * rounds * kAlpha + others * part * (2 * kBeta + kGamma));
      expect(binomial_broadcast(ranks), rounds * (kAlpha + bytes * kBeta));
    }
  }
}

/// Four ranks of a node, two to a cache.
Machine two_caches() {
  Machine machine{.ranks_per_node = 4, .ranks_per_cache = 2};
  machine.model.flag = 100;
  machine.model.look = 10;
  machine.model.read = SizeTable{{0, 1000}};
  machine.model.cache = {.flag = 20, .look = 5, .read = SizeTable{{0, 200}}};
  return machine;
}

Schedule nested(Collective collective, std::string_view name) {
  return schedule_of(*find_algorithm(collective, name).value(),
                     {.collective = collective, .ranks = 4, .ranks_per_cache = 2});
}

TEST(Walk, AFlagWithinACacheIsSeenSooner) {
  const auto prediction = walk(nested(Collective::barrier, "nested"), 0, two_caches());
  ASSERT_TRUE(prediction.is_ok());
  // The first rank of a cache hears of its cache after 20, of the other cache 110 later, and tells its cache.
  EXPECT_THAT(prediction.value().finish, ElementsAre(130, 150, 130, 150));
}

TEST(Walk, AReadWithinACacheCostsLess) {
  // Root 0 reads rank 1, which shares its cache, and then rank 2, the sum of the other cache.
  const auto prediction = walk(nested(Collective::reduce, "nested"), 8, two_caches());
  ASSERT_TRUE(prediction.is_ok());
  EXPECT_THAT(prediction.value().finish, ElementsAre(20 + 200 + 100 + 1000, 0, 20 + 200, 0));
  // All at once: three flags, one of them of its own cache, and three reads.
  const Schedule one_shot = schedule_of(*find_algorithm(Collective::reduce, "one_shot").value(),
                                        {.collective = Collective::reduce, .ranks = 4});
  EXPECT_EQ(ns_of(one_shot, 8, two_caches()), 100 + 10 + 10 + 2 * 1000 + 200);
}

TEST(Walk, AnInterfaceTakesOneMessageAfterTheOther) {
  // Rank 0 sends to 4 and 2 and 1: nothing but the gap between messages and their bytes keeps it.
  const Machine machine = loggp(0, 0, 100, 1, 0);
  const auto prediction = walk(binomial_broadcast(8), 1000, machine).value();
  EXPECT_THAT(prediction.finish, ElementsAre(2200, 3200, 2100, 3100, 2100, 3100, 2000, 3000));
}

TEST(Walk, MessagesOfTwoSendersComeInOneAfterTheOther) {
  const Machine machine = loggp(0, 0, 100, 1, 0);
  EXPECT_EQ(ns_of(binomial_reduce(3), 1000, machine), 2100);
}

TEST(Walk, RanksOfANodeAreNear) {
  Machine machine = loggp(10'000, 0, 0, 0);
  machine.ranks_per_node = 2;
  machine.model.near.latency = 10;
  EXPECT_EQ(ns_of(binomial_broadcast(2), 8, machine), 10);
  EXPECT_EQ(ns_of(binomial_broadcast(4), 8, machine), 10'010);
}

TEST(Walk, ALargeMessageWaitsForAnAnswer) {
  Machine machine = loggp(1000, 0, 0, 0);
  machine.model.eager_bytes = 4096;
  machine.model.handshake = 2000;
  EXPECT_EQ(ns_of(binomial_broadcast(2), 4096, machine), 1000);
  EXPECT_EQ(ns_of(binomial_broadcast(2), 4097, machine), 3000);
}

TEST(Walk, AFlagWithinANodeIsSeenAndOneBetweenNodesIsAMessage) {
  Machine machine = loggp(1000, 300, 0, 0);
  machine.model.flag = 70;
  EXPECT_EQ(ns_of(named(Collective::barrier, "dissemination", 8), 0, machine), 3 * (1000 + 2 * 300));
  machine.ranks_per_node = 8;
  EXPECT_EQ(ns_of(named(Collective::barrier, "dissemination", 8), 0, machine), 3 * 70);
}

TEST(Walk, MemoryOfANodeIsReadAndStored) {
  Machine machine;
  machine.ranks_per_node = 4;
  machine.model.flag = 70;
  machine.model.read = SizeTable::line(0, 1);
  machine.model.reduce = SizeTable::line(0, 10);
  machine.model.copy = SizeTable::line(0, 100);
  // A quarter of 4000 bytes from 3 other ranks, 3 additions, 4 stores.
  EXPECT_EQ(ns_of(named(Collective::all_reduce, "two_shot", 4), 4000, machine), 2 * 70 + 1000 * (3 + 30 + 400));
}

TEST(Walk, RefusesMemoryOfAnotherNode) {
  Machine machine;
  machine.ranks_per_node = 2;
  const Status refused = walk(named(Collective::all_reduce, "two_shot", 4), 4000, machine).status();
  EXPECT_EQ(refused.code(), Code::unavailable);
  EXPECT_THAT(refused.message(), HasSubstr("uses memory of ranks on other nodes"));
}

TEST(Walk, NamesTheRankThatNeverGetsOn) {
  Schedule schedule = binomial_reduce(4);
  schedule.step_count = [](int rank) {
    return rank == 3 ? 0 : static_cast<int>(children_of(rank, 4).size()) + (rank > 0);
  };
  const Status refused = walk(schedule, 8, Machine()).status();
  EXPECT_EQ(refused.code(), Code::refuted);
  EXPECT_THAT(refused.message(), HasSubstr("rank 0 never gets past step 1 of reduce binomial"));
}

TEST(Walk, BothOrdersAgreeIfNothingIsShared) {
  const Machine machine = example_machine();
  for (const Algorithm* algorithm : algorithms_of(Collective::all_reduce)) {
    for (const int ranks : {8, 16, 48}) {
      const Schedule schedule = named(Collective::all_reduce, algorithm->name, ranks, 8);
      const auto by_programs = walk(schedule, 65536, machine);
      const auto by_time = walk(schedule, 65536, machine, {.order = Order::time});
      ASSERT_EQ(by_programs.is_ok(), by_time.is_ok());
      if (!by_programs.is_ok()) continue;
      EXPECT_EQ(by_programs.value().finish, by_time.value().finish) << algorithm->name;
    }
  }
}

TEST(Walk, OneBlockOfRanksIsWhatAllOfThemDo) {
  const Machine machine = example_machine();
  for (const auto& [name, period] : {std::pair("ring", 8), {"ring", 16}, {"two_level", 8}}) {
    const Schedule schedule = named(Collective::all_reduce, name, 64, 8);
    const auto all = walk(schedule, 1 << 20, machine).value();
    const auto some = walk(schedule, 1 << 20, machine, {.period = period}).value();
    ASSERT_EQ(some.finish.size(), static_cast<std::size_t>(period));
    EXPECT_EQ(some.ns, all.ns);
    for (int rank = 0; rank < 64; ++rank) {
      EXPECT_EQ(some.finish[static_cast<std::size_t>(rank % period)], all.finish[static_cast<std::size_t>(rank)]);
    }
    EXPECT_EQ(some.steps * 64 / static_cast<unsigned>(period), all.steps);
  }
}

}  // namespace
}  // namespace tutti::harness::simulate
