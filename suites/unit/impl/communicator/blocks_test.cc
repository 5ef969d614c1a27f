// SPDX-License-Identifier: Apache-2.0
// What is different where ranks are thread blocks: one launch for a call of all ranks, posted by any thread, and what
// is refused. What is the same for all kinds of ranks is tested beside them (suites/conformance/ranks.h).
#include "suites/unit/impl/communicator/blocks.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

using testing::Each;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// ---- calls

TEST_F(Blocks, BlockingCallsComeFromAThreadOfEachRank) {
  for (const TeamShape teams : {TeamShape{1, 1}, TeamShape{2, 2}}) {
    open(4, {.teams = teams});
    on_each([](Communicator& communicator) {
      for (int i = 0; i < 20; ++i) {
        const std::vector<std::int32_t> in(100, communicator.rank() + i);
        std::vector<std::int32_t> out(100);
        ASSERT_TRUE(communicator.all_reduce(in.data(), out.data(), 100, Dtype::i32, Op::sum).is_ok());
        ASSERT_THAT(out, Each(6 + 4 * i));
      }
      ASSERT_TRUE(communicator.barrier().is_ok());
    });
  }
}

TEST_F(Blocks, OneThreadPostsForAllRanksAndTestsThem) {
  open(4, {.teams = {.lanes = 2}});
  std::vector<Work> works;
  std::array<std::array<float, 8>, 4> in{}, out{};
  for (int call = 0; call < 2; ++call) {
    for (int rank = 3; rank >= 0; --rank) {
      const auto who = static_cast<std::size_t>(rank);
      in[who].fill(static_cast<float>(rank));
      works.push_back(on(rank)
                          .post({.collective = Collective::all_reduce,
                                 .op = Op::sum,
                                 .count = 8,
                                 .input = in[who].data(),
                                 .output = out[who].data()})
                          .value());
      if (call == 0 && rank > 0) {
        EXPECT_FALSE(works.back().test().value()) << "the others have not called";
        EXPECT_EQ(works.back().position(),
                  "operation 1 (all_reduce one_shot of 8 float, sum, segment 1 of 2): waits for rank 0 to call it");
      }
    }
  }
  for (const Work& work : works) EXPECT_TRUE(tested_until_over(work).value());
  for (const auto& mine : out) EXPECT_THAT(mine, Each(6.0F));
  EXPECT_EQ(works.front().position(), "complete");
  EXPECT_EQ(device_.newest, 2U) << "a launch for each call of all";
}

/// Every rank addresses the buffers of all: scratch is for what may go by packets.
TEST_F(Blocks, LongPrivateBuffersAreReadWhereTheyLie) {
  std::vector<bool> exposes;
  const AfterBind hook = [&exposes](int rank, const Call&, BoundEntry& entry) {
    if (rank != 0) return;
    const auto ops = entry.call.plan(0).ops();
    exposes.push_back(std::ranges::any_of(ops, [](const PlanOp& op) { return (op.marks & mark_exposes) != 0; }));
  };
  open(2, {.hooks = {.after_bind = hook}});
  for (const Count count : {4, 256, 257}) {
    for (int rank = 0; rank < 2; ++rank) {
      Call call = sum(rank, count);
      call.schedule = schedule(Collective::all_reduce, "two_shot");
      ASSERT_TRUE(on(rank).prepare(call).is_ok());
    }
  }
  EXPECT_THAT(exposes, testing::ElementsAre(false, false, true));
}

TEST_F(Blocks, ASendIsCompleteWhenItsReceiveIs) {
  open(2);
  float sent = 7, received = 0;
  Work send = on(0).post_send(&sent, 1, Dtype::f32, 1).value();
  EXPECT_FALSE(send.test().value());
  EXPECT_EQ(device_.newest, 0U) << "nothing that could not end";
  Work receive = on(1).post_recv(&received, 1, Dtype::f32, 0).value();
  EXPECT_TRUE(tested_until_over(receive).value());
  EXPECT_TRUE(send.test().value());
  EXPECT_EQ(received, 7);
}

TEST_F(Blocks, ACallIsPreparedByEachRankByItself) {
  open(2);
  for (int rank = 0; rank < 2; ++rank) EXPECT_TRUE(on(rank).prepare(sum(rank)).is_ok());
  EXPECT_EQ(device_.newest, 0U);
  Call wrong = sum(0);
  wrong.root = 2;
  EXPECT_EQ(on(0).prepare(wrong).message(), "root 2 is out of range: 0 to 1");
  EXPECT_EQ(on(0).post(wrong).status().code(), Code::invalid_argument);
  on_each([this](Communicator& mine) { EXPECT_TRUE(mine.run(sum(mine.rank())).is_ok()) << "nothing was posted"; });
}

TEST_F(Blocks, PlansOfVFormsAreForgottenAndGiveTheirMemoryBack) {
  open(2);
  const int before = device_.live;
  on_each([](Communicator& mine) {
    for (Count round = 0; round < 600; ++round) {
      const std::array<Count, 2> counts{round, 1};
      const std::vector<std::int32_t> in(static_cast<std::size_t>(round) + 1, mine.rank() + 1);
      std::vector<std::int32_t> out(static_cast<std::size_t>(round) + 1);
      ASSERT_TRUE(mine.all_gather_v(in.data(), out.data(), {.counts = counts}, Dtype::i32).is_ok());
      ASSERT_EQ(out.front(), round > 0 ? 1 : 2);
      ASSERT_EQ(out.back(), 2);
    }
  });
  EXPECT_LT(device_.live, before + 2 * 256 + 10) << "not 1200";
  EXPECT_GT(device_.live, before + 2 * 50) << "they are kept for a while";
  communicators_.clear();
  EXPECT_EQ(device_.live, 0);
}

// ---- calls that do not fit

struct TwoCalls {
  const char* name;
  Call first, second;
  const char* algorithms[2];
  const char* text;
};

TEST_F(Blocks, OtherCallsAreAMismatchOnAllRanksNamingTheField) {
  const Call eight{.collective = Collective::all_reduce, .op = Op::sum, .count = 8};
  Call nine = eight, doubles = eight, most = eight, in_place = eight, shared = eight;
  nine.count = 9;
  doubles.dtype = Dtype::f64;
  most.op = Op::max;
  in_place.is_in_place = true;
  shared.buffers = Buffers::shared;
  const Call barrier{.collective = Collective::barrier};
  const Call zero{.collective = Collective::broadcast, .root = 0, .count = 8, .is_in_place = true};
  Call one = zero;
  one.root = 1;
  const TwoCalls calls[] = {
      {"collective",
       eight,
       barrier,
       {"one_shot", "dissemination"},
       "collective all_reduce and barrier (rank 0 calls all_reduce one_shot of 8 float, sum, rank 1 calls barrier "
       "dissemination)"},
      {"count", eight, nine, {"one_shot", "one_shot"}, "count 8 and 9 (rank 0 calls"},
      {"dtype", eight, doubles, {"one_shot", "one_shot"}, "dtype float and double ("},
      {"op", eight, most, {"one_shot", "one_shot"}, "op sum and max ("},
      {"placement", eight, in_place, {"one_shot", "one_shot"}, "placement out of place and in place ("},
      {"buffers", eight, shared, {"one_shot", "one_shot"}, "buffers private and shared ("},
      {"algorithm", eight, eight, {"one_shot", "ring"}, "algorithm one_shot and ring ("},
      {"root", zero, one, {"direct", "direct"}, "root 0 and 1 ("},
  };
  for (const TwoCalls& both : calls) {
    SCOPED_TRACE(both.name);
    open(2);
    on_each([&](Communicator& mine) { ASSERT_TRUE(mine.barrier().is_ok()); });
    std::array<std::array<double, 32>, 2> in{}, out{};
    const std::array schedules{schedule(both.first.collective, both.algorithms[0], both.first.root),
                               schedule(both.second.collective, both.algorithms[1], both.second.root)};
    on_each([&](Communicator& mine) {
      const auto rank = static_cast<std::size_t>(mine.rank());
      Call call = rank == 0 ? both.first : both.second;
      call.input = in[rank].data();
      call.output = call.is_in_place ? in[rank].data() : out[rank].data();
      call.schedule = schedules[rank];
      const Status status = mine.run(call);
      EXPECT_EQ(status.code(), Code::mismatch);
      EXPECT_THAT(std::string(status.message()),
                  StartsWith(std::string("rank 0 and rank 1 do not agree on operation 2: ") + both.text));
      EXPECT_EQ(mine.barrier().message(), status.message()) << "the communicator is over";
    });
  }
}

TEST_F(Blocks, OtherCallsSayWhoIsAheadOrRepeats) {
  open(2);
  std::vector<Work> works;
  const Call barrier{.collective = Collective::barrier};
  for (const Call& call : {sum(0), barrier}) works.push_back(on(0).post(call).value());
  const Result<Work> posted = on(1).post(barrier);
  EXPECT_EQ(posted.status().code(), Code::mismatch);
  EXPECT_THAT(
      std::string(posted.status().message()),
      EndsWith("; rank 1's operation 1 is rank 0's operation 2: it has left out a call, or makes them in another "
               "order"));
  for (Work& work : works) EXPECT_EQ(work.test().status().message(), posted.status().message());
}

TEST_F(Blocks, CountsOfAVFormSayTheBlock) {
  open(2);
  on_each([](Communicator& mine) {
    const std::array<Count, 2> counts{2, mine.rank() == 0 ? 3 : 4};
    const std::array<float, 4> in{};
    std::array<float, 6> out{};
    const Status status = mine.all_gather_v(in.data(), out.data(), {.counts = counts}, Dtype::f32);
    EXPECT_EQ(status.code(), Code::mismatch);
    EXPECT_THAT(std::string(status.message()),
                StartsWith("rank 0 and rank 1 do not agree on operation 1: counts[1] 3 and 4 ("));
  });
}

// ---- what is refused

TEST_F(Blocks, BlocksOutOfRangeAreRefusedWithTheNumbers) {
  const auto domain = local::open_domain(local::shape_for(3)).value();
  const auto told = [&](const TeamShape& teams) {
    const auto made = create_as_blocks(*domain, device_, teams, {});
    return made.is_ok() ? std::string() : std::string(made.status().message());
  };
  EXPECT_EQ(told({.lanes = 0}), "0 blocks of a rank: 1 to 64");
  EXPECT_EQ(told({.lanes = 65}), "65 blocks of a rank: 1 to 64");
  EXPECT_EQ(told({.threads = 0}), "0 threads of a block: at least 1");
  EXPECT_EQ(told({.lanes = 64}), "");
  EXPECT_EQ(told({.lanes = 64, .threads = 6}), "192 blocks of 6 threads are 1152 threads of the host: at most 1024");
}

TEST_F(Blocks, ABufferThatBeginsWithinAnElementIsRefused) {
  open(2);
  alignas(float) std::array<std::byte, 64> bytes{};
  Call call = sum(0);
  call.input = bytes.data() + 1;
  EXPECT_EQ(std::string(on(0).post(call).status().message()),
            "a buffer of float begins 1 bytes after a multiple of 4: thread blocks take whole elements only");
  EXPECT_FALSE(on(0).post_send(bytes.data() + 2, 1, Dtype::f32, 1).is_ok());
  EXPECT_FALSE(on(1).post_recv(bytes.data() + 3, 1, Dtype::f32, 0).is_ok());
}

TEST_F(Blocks, LackOfMemoryIsAnErrorWhereverItShows) {
  const auto domain = local::open_domain(local::shape_for(2)).value();
  for (const int allocations : {0, 1}) {
    device_.left = allocations;
    const auto made = create_as_blocks(*domain, device_, {}, {});
    EXPECT_EQ(made.status().code(), Code::resource) << allocations;
    EXPECT_THAT(std::string(made.status().message()), testing::MatchesRegex("cannot allocate [0-9]+ bytes"));
  }
  device_.left = -1;
  for (const int allocations : {0, 1, 2}) {  // the plans of either rank, then the calls
    open(2);
    ASSERT_TRUE(on(0).post(sum(0)).is_ok());
    device_.left = allocations;
    EXPECT_EQ(on(1).post(sum(1)).status().code(), Code::resource) << allocations;
    device_.left = -1;
    EXPECT_THAT(std::string(on(0).barrier().message()), testing::MatchesRegex("cannot allocate [0-9]+ bytes"));
  }
}

TEST_F(Blocks, LackOfMemoryForAGroupIsToldToAllRanksAndTheWorldGoesOn) {
  open(3);
  std::vector<std::unique_ptr<GroupFormation>> formations;
  device_.left = 2;  // that of the first group
  for (int rank = 0; rank < 3; ++rank) formations.push_back(on(rank).post_split(rank == 0 ? 0 : 1, 0).value());
  for (const auto& formation : formations) {
    EXPECT_EQ(formation->test().status().code(), Code::resource);
    EXPECT_THAT(std::string(formation->test().status().message()),
                testing::MatchesRegex("cannot allocate [0-9]+ bytes"));
  }
  device_.left = -1;
  formations.clear();
  on_each([](Communicator& mine) { EXPECT_TRUE(mine.barrier().is_ok()); });
}

TEST_F(Blocks, GroupsAreFormedByPollingAndOutliveTheWorld) {
  open(6);
  std::vector<std::unique_ptr<GroupFormation>> formations;
  for (int rank = 0; rank < 6; ++rank) {
    formations.push_back(on(rank).post_split(rank % 2, -rank).value());
    EXPECT_EQ(formations.back()->test().value(), rank == 5) << "all have said what they wish";
  }
  std::vector<std::unique_ptr<Communicator>> groups;
  for (const auto& formation : formations) {
    EXPECT_TRUE(formation->test().value());
    groups.push_back(formation->take());
  }
  formations.clear();
  communicators_.clear();
  std::array<std::int32_t, 6> in{0, 1, 2, 3, 4, 5}, out{};
  std::vector<Work> works;
  for (std::size_t rank = 0; rank < 6; ++rank) {
    works.push_back(groups[rank]
                        ->post({.collective = Collective::all_reduce,
                                .dtype = Dtype::i32,
                                .op = Op::sum,
                                .count = 1,
                                .input = &in[rank],
                                .output = &out[rank]})
                        .value());
  }
  for (const Work& work : works) EXPECT_TRUE(tested_until_over(work).value());
  EXPECT_THAT(out, testing::ElementsAre(6, 9, 6, 9, 6, 9));
  EXPECT_EQ(groups[0]->rank(), 2);
  EXPECT_EQ(groups[0]->world_rank(0), 4);
}

}  // namespace
}  // namespace tutti
