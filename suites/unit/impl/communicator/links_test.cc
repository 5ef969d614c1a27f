// SPDX-License-Identifier: Apache-2.0
// Ranks on several hosts, over links that deliver by a seed (impl/transports/fake). Algorithms of channels and of flags
// run there as they are; what would touch memory of another host is refused.
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "impl/transports/fake/domain.h"
#include "suites/unit/impl/communicator/hosts.h"

namespace tutti {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Few small slots, so that short messages fill them.
DomainShape small_shape(int ranks, int hosts) {
  DomainShape shape = shape_across_hosts(ranks, hosts, 0);
  shape.scratch_bytes = 4096;
  shape.slots = 8;
  shape.slot_bytes = 256;
  shape.pair_slots = 2;
  shape.pair_slot_bytes = 256;
  return shape;
}

RanksOn world_of(int ranks, int hosts, const fake::Weather& weather = {},
                 std::chrono::nanoseconds timeout = seconds(60)) {
  return RanksOn(fake::open_domain(small_shape(ranks, hosts), weather).value(), timeout);
}

TEST(Hosts, BlocksAreAsEqualAsTheyCanBe) {
  const Hosts hosts = Hosts::in_blocks(5, 3);
  EXPECT_EQ(hosts.count(), 3);
  EXPECT_EQ(hosts.ranks_on(0), (std::vector{0, 1}));
  EXPECT_EQ(hosts.ranks_on(1), (std::vector{2, 3}));
  EXPECT_EQ(hosts.ranks_on(2), (std::vector{4}));
  EXPECT_EQ(hosts.place_of(3), 1);
  EXPECT_EQ(hosts.most_ranks(), 2);
  const Hosts mixed(std::vector{1, 0, 1});
  EXPECT_EQ(mixed.ranks_on(1), (std::vector{0, 2}));
  EXPECT_TRUE(mixed.share_memory(0, 2));
  EXPECT_FALSE(mixed.share_memory(0, 1));
}

TEST(Links, AlgorithmsOfChannelsAndOfLinesAreRight) {
  struct Row {
    const char* algorithm;
    std::vector<Count> counts;
  };
  // Of 64 elements a slot: in the header, in one slot, in many; what lies in a line has at most 12.
  const std::vector<Row> rows{{"ring", {0, 1, 5, 100, 3000}},
                              {"halving", {1, 5, 100, 3000}},
                              {"recursive_doubling", {1, 5, 100, 3000}},
                              {"one_shot", {1, 12}}};
  for (const auto& [ranks, hosts] : {std::pair(2, 2), std::pair(3, 3), std::pair(3, 2), std::pair(4, 2)}) {
    for (const Row& row : rows) {
      const Schedule schedule = schedule_named(Collective::all_reduce, row.algorithm, ranks);
      for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        RanksOn world = world_of(ranks, hosts, {.seed = seed});
        int salt = 0;
        for (const Count count : row.counts) {
          for (int repetition = 0; repetition < 6; ++repetition) {  // more than there are generations
            Sums sums(ranks, count, ++salt);
            std::vector<Work> works;
            for (int rank = 0; rank < ranks; ++rank) {
              auto work = world.on(rank).post(sums.call(rank, &schedule));
              ASSERT_TRUE(work.is_ok()) << row.algorithm << ": " << work.status().message();
              works.push_back(std::move(work).value());
            }
            ASSERT_TRUE(world.go(works, seed))
                << row.algorithm << " on " << ranks << ", " << count << ", seed " << seed;
            ASSERT_TRUE(sums.are_right()) << row.algorithm << " on " << ranks << ", " << count << ", seed " << seed;
          }
        }
      }
    }
  }
}

TEST(Links, ARingThatNeedsAllSlotsGoesOnThoughCountsTakeAnotherWay) {
  constexpr int kRanks = 3;
  const Schedule ring = schedule_named(Collective::all_reduce, "ring", kRanks);
  DomainShape shape = small_shape(kRanks, kRanks);
  shape.slots = ring.least_slots(7);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    RanksOn world(fake::open_domain(shape, {.seed = seed}).value());
    Sums sums(kRanks, 7 * 64 * kRanks, 1);
    std::vector<Work> works;
    for (int rank = 0; rank < kRanks; ++rank) works.push_back(world.on(rank).post(sums.call(rank, &ring)).value());
    ASSERT_TRUE(world.go(works, seed)) << "seed " << seed;
    ASSERT_TRUE(sums.are_right()) << "seed " << seed;
  }
}

TEST(Links, ABarrierOfFlagsWaitsForAllRanks) {
  for (const auto& [ranks, hosts] : {std::pair(2, 2), std::pair(3, 2), std::pair(5, 4)}) {
    const Schedule schedule = schedule_named(Collective::barrier, "dissemination", ranks);
    const Call call{.collective = Collective::barrier, .schedule = &schedule};
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      RanksOn world = world_of(ranks, hosts, {.seed = seed});
      for (int repetition = 0; repetition < 10; ++repetition) {
        const int late = repetition % ranks;
        std::vector<Work> works;
        for (int rank = 0; rank < ranks; ++rank) {
          if (rank != late) works.push_back(world.on(rank).post(call).value());
        }
        for (int look = 0; look < 200; ++look) {
          for (Work& work : works) ASSERT_FALSE(work.test().value()) << "before rank " << late << " came";
        }
        works.push_back(world.on(late).post(call).value());
        ASSERT_TRUE(world.go(works, seed)) << ranks << " ranks, seed " << seed;
      }
    }
  }
}

TEST(Links, WhatAutoChoosesRunsOnAnyHosts) {
  for (const Collective collective : every_collective()) {
    if (has_counts(collective)) continue;
    for (const int ranks : {2, 3, 5, 8}) {
      for (const int hosts : {2, 3, 8}) {
        if (hosts > ranks || (has_pairs(collective) && ranks < 2)) continue;
        RanksOn world(fake::open_domain(shape_across_hosts(ranks, hosts, 0), {}).value());
        for (const Count count : {1, 5000, 200'000}) {
          const Status bound = world.on(0).prepare({.collective = collective,
                                                    .dtype = Dtype::f32,
                                                    .op = is_reducing(collective) ? Op::sum : Op::none,
                                                    .count = has_data(collective) ? count : 0});
          EXPECT_TRUE(bound.is_ok()) << bound.message();
        }
      }
    }
  }
}

// Nobody waits for all ranks there, and what the other one has completed is not told.
TEST(Links, AFlagThatAnswersAMessageMayCross) {
  const Schedule window = schedule_named(Collective::message_rate, "channel", 2);
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    RanksOn world = world_of(2, 2, {.seed = seed});
    for (int repetition = 0; repetition < 20; ++repetition) {  // more than there are generations
      const std::vector<std::int32_t> sent(100, repetition);
      std::vector<std::int32_t> received(100, -1);
      Call call{.collective = Collective::message_rate, .dtype = Dtype::i32, .count = 100, .schedule = &window};
      std::vector<Work> works;
      for (int rank = 0; rank < 2; ++rank) {
        call.input = rank == 0 ? sent.data() : nullptr;
        call.output = rank == 1 ? received.data() : nullptr;
        works.push_back(world.on(rank).post(call).value());
      }
      ASSERT_TRUE(world.go(works, seed)) << "seed " << seed << ", call " << repetition;
      EXPECT_EQ(received, sent);
    }
  }
}

TEST(Links, BlockingCallsLeaveNothingToldBehind) {
  constexpr int kRanks = 3;
  const Schedule ring = schedule_named(Collective::all_reduce, "ring", kRanks);
  const Schedule barrier = schedule_named(Collective::barrier, "dissemination", kRanks);
  RanksOn world = world_of(kRanks, 2);
  std::vector<std::unique_ptr<Sums>> sums;
  for (int i = 0; i < 20; ++i) sums.push_back(std::make_unique<Sums>(kRanks, 500, i));
  world.in_threads([&](int rank) {
    for (auto& one : sums) {
      const Status summed = world.on(rank).run(one->call(rank, &ring));
      EXPECT_TRUE(summed.is_ok()) << summed.message();
      const Status met = world.on(rank).run({.collective = Collective::barrier, .schedule = &barrier});
      EXPECT_TRUE(met.is_ok()) << met.message();
    }
  });
  for (const auto& one : sums) EXPECT_TRUE(one->are_right());
}

TEST(Links, MessagesOfAnyLengthArriveInTheirOrder) {
  constexpr int kRanks = 4;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    RanksOn world = world_of(kRanks, 2, {.seed = seed});
    std::vector<std::vector<std::int32_t>> sent, received;
    std::vector<Work> works;
    // The first is longer than the channel; some are empty, some travel in the header.
    for (const Count count : {3000, 0, 5, 64, 1}) {
      for (int from = 0; from < kRanks; ++from) {
        for (int to = 0; to < kRanks; ++to) {
          sent.emplace_back(static_cast<std::size_t>(count),
                            static_cast<std::int32_t>(1000 * from + 10 * to + count % 7));
          received.emplace_back(static_cast<std::size_t>(count), -1);
          works.push_back(world.on(to).post_recv(received.back().data(), count, Dtype::i32, from).value());
          works.push_back(world.on(from).post_send(sent.back().data(), count, Dtype::i32, to).value());
        }
      }
    }
    ASSERT_TRUE(world.go(works, seed));
    EXPECT_EQ(sent, received) << "seed " << seed;
  }
}

TEST(Links, AnotherLengthIsAMismatchOnBothHosts) {
  RanksOn world = world_of(2, 2);
  std::vector<std::int32_t> values(8);
  auto send = world.on(0).post_send(values.data(), 8, Dtype::i32, 1).value();
  auto receive = world.on(1).post_recv(values.data(), 4, Dtype::i32, 0).value();
  const Status mismatch = receive.wait(seconds(20));
  EXPECT_EQ(mismatch.code(), Code::mismatch);
  EXPECT_THAT(mismatch.message(),
              AllOf(HasSubstr("rank 0 on host 0"), HasSubstr("rank 1 on host 1"), HasSubstr("8 int32")));
  EXPECT_TRUE(send.wait(seconds(20)).is_ok());  // it lay in its slot before
  // The other host is told.
  auto next = world.on(0).post_recv(values.data(), 1, Dtype::i32, 1);
  const Status told = next.is_ok() ? next.value().wait(seconds(20)) : next.status();
  EXPECT_EQ(told.code(), Code::aborted);
  EXPECT_THAT(told.message(),
              testing::StartsWith("rank 1 on host 1 failed: mismatch: message 1 from rank 0 on host 0"));
}

/// Posts on all ranks, and waits on one: how that ends.
Status end_of(RanksOn& world, const std::function<Call(int)>& call, milliseconds patience) {
  std::vector<Work> works;
  for (int rank = 0; rank < world.ranks(); ++rank) {
    auto work = world.on(rank).post(call(rank));
    if (!work.is_ok()) return work.status();
    works.push_back(std::move(work).value());
  }
  for (int turn = 0; turn < 20'000; ++turn) {
    for (Work& work : works) {
      if (const auto done = work.test(); !done.is_ok()) return done.status();
    }
  }
  for (Work& work : works) TUTTI_RETURN_IF_ERROR(work.wait(patience));
  return {};
}

TEST(Links, WhatIsLostIsSeenAtTheDeadline) {
  constexpr int kRanks = 3;
  const Schedule ring = schedule_named(Collective::all_reduce, "ring", kRanks);
  const Schedule barrier = schedule_named(Collective::barrier, "dissemination", kRanks);
  Sums sums(kRanks, 3000, 1);
  const auto sum = [&](int rank) { return sums.call(rank, &ring); };
  const auto meet = [&](int) { return Call{.collective = Collective::barrier, .schedule = &barrier}; };
  RanksOn sound = world_of(kRanks, kRanks);
  EXPECT_TRUE(end_of(sound, sum, milliseconds(20'000)).is_ok());
  EXPECT_TRUE(end_of(sound, meet, milliseconds(20'000)).is_ok());
  RanksOn loses_slice = world_of(kRanks, kRanks, {.mishap = {.lost_slice = 2}});
  EXPECT_EQ(end_of(loses_slice, sum, milliseconds(50)).code(), Code::timeout);
  RanksOn loses_flag = world_of(kRanks, kRanks, {.mishap = {.lost_line = 0}});
  EXPECT_EQ(end_of(loses_flag, meet, milliseconds(50)).code(), Code::timeout);
}

TEST(Links, AtTheDeadlineNothingIsSaidOfRanksThatAreNotKnown) {
  RanksOn world = world_of(4, 2);
  const Schedule ring = schedule_named(Collective::all_reduce, "ring", 4);
  Sums sums(4, 100, 1);
  const Status late = world.on(0).post(sums.call(0, &ring)).value().wait(milliseconds(60));
  EXPECT_EQ(late.code(), Code::timeout);
  EXPECT_THAT(late.message(), AllOf(HasSubstr("waits for"), HasSubstr("from rank 3 on host 1"),
                                    HasSubstr("rank 1 on host 0 has not called operation 1"),
                                    HasSubstr("rank 2 on host 1 is not known here"),
                                    Not(HasSubstr("rank 2 on host 1 has not called"))));
}

TEST(Links, ALinkThatFailsEndsTheCallAndNamesTheRank) {
  const Schedule barrier = schedule_named(Collective::barrier, "dissemination", 2);
  RanksOn world = world_of(2, 2, {.mishap = {.goes = true}});
  const Status status = world.on(0).run({.collective = Collective::barrier, .schedule = &barrier});
  EXPECT_EQ(status.code(), Code::aborted);
  EXPECT_THAT(status.message(), HasSubstr("rank 1 on host 1 went"));
}

TEST(Links, WhatTouchesMemoryOfAnotherHostIsRefusedOnAllRanksAlike) {
  constexpr int kRanks = 3;
  RanksOn world = world_of(kRanks, 2);
  const Schedule two_shot = schedule_named(Collective::all_reduce, "two_shot", kRanks);
  // Rank 0 shares memory with the root, and rank 2 does not.
  const Schedule direct = schedule_of(*find_algorithm(Collective::gather, "direct").value(),
                                      {.collective = Collective::gather, .ranks = kRanks, .root = 1});
  Sums sums(kRanks, 500, 1);
  for (int rank = 0; rank < kRanks; ++rank) {
    const Status refused = world.on(rank).post(sums.call(rank, &two_shot)).status();
    EXPECT_EQ(refused.code(), Code::unavailable);
    EXPECT_THAT(refused.message(),
                AllOf(HasSubstr("two_shot of all_reduce exposes the input of rank 0 on host 0"),
                      HasSubstr("rank 2 on host 1: choose circulant, halving, recursive_doubling, ring")));
    // Whoever could take part all the same would wait for ever.
    EXPECT_EQ(
        world.on(rank).prepare({.collective = Collective::gather, .root = 1, .count = 4, .schedule = &direct}).code(),
        Code::unavailable);
  }
}

TEST(Links, OnOneHostEverythingIsAsWithoutThem) {
  RanksOn world = world_of(3, 1);
  const Schedule two_shot = schedule_named(Collective::all_reduce, "two_shot", 3);
  Sums sums(3, 500, 1);
  std::vector<Work> works;
  for (int rank = 0; rank < 3; ++rank) works.push_back(world.on(rank).post(sums.call(rank, &two_shot)).value());
  EXPECT_TRUE(world.go(works, 1));
  EXPECT_TRUE(sums.are_right());
  EXPECT_EQ(world.domain().seen_by(1).network(), nullptr);
}

}  // namespace
}  // namespace tutti
