// SPDX-License-Identifier: Apache-2.0
// Calls of thread blocks that are captured once and posted again and again: their results, what they may be mixed with,
// and what is told where they do not end.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/unit/impl/communicator/blocks.h"

namespace tutti {
namespace {

using std::chrono::milliseconds;
using testing::Each;
using testing::HasSubstr;
using testing::StartsWith;

class BlockGraphs : public Blocks {
 protected:
  using Captured = std::vector<std::unique_ptr<CapturedCalls>>;

  /// `post` posts on a rank what is captured.
  template <class Post>
  Captured captured(Post post) {
    for (int rank = 0; rank < ranks(); ++rank) EXPECT_TRUE(on(rank).begin_capture().is_ok());
    for (int rank = 0; rank < ranks(); ++rank) post(on(rank));
    Captured all;
    for (int rank = 0; rank < ranks(); ++rank) all.push_back(on(rank).end_capture().value());
    return all;
  }
  std::vector<Work> posted(const Captured& calls) {
    std::vector<Work> works;
    for (int rank = 0; rank < ranks(); ++rank) {
      works.push_back(on(rank).post_captured(*calls[static_cast<std::size_t>(rank)]).value());
    }
    return works;
  }
  void replay(const Captured& calls) {
    for (const Work& work : posted(calls)) {
      const Result<bool> tested = tested_until_over(work);
      ASSERT_TRUE(tested.is_ok()) << tested.status().message();
      ASSERT_TRUE(tested.value());
    }
  }
};

/// A sum, what is gathered of it, and a barrier: each call takes what the one before it left.
TEST_F(BlockGraphs, EveryReplayTakesTheDataThatIsThereThen) {
  struct Shape {
    int ranks;
    TeamShape teams;
    int devices;
  };
  for (const Shape& shape : {Shape{1, {}, 1}, {2, {}, 1}, {3, {.lanes = 2, .threads = 2}, 1}, {4, {.lanes = 2}, 2}}) {
    open(shape.ranks, {.teams = shape.teams, .devices = shape.devices});
    const auto count = static_cast<std::size_t>(shape.ranks);
    constexpr Count kElements = 1000;
    std::vector<std::vector<std::int32_t>> in(count, std::vector<std::int32_t>(kElements)), sum = in, all(count);
    for (auto& one : all) one.resize(count * kElements);
    const Captured graph = captured([&](Communicator& mine) {
      const auto rank = static_cast<std::size_t>(mine.rank());
      const Call reduce{.collective = Collective::all_reduce,
                        .dtype = Dtype::i32,
                        .op = Op::sum,
                        .count = kElements,
                        .input = in[rank].data(),
                        .output = sum[rank].data()};
      const Call gather{.collective = Collective::all_gather,
                        .dtype = Dtype::i32,
                        .count = kElements,
                        .input = sum[rank].data(),
                        .output = all[rank].data()};
      for (const Call& call : {reduce, gather, Call{.collective = Collective::barrier}}) {
        ASSERT_TRUE(mine.post(call).is_ok());
      }
    });
    EXPECT_TRUE(device_.is_idle()) << "nothing runs that is captured";
    EXPECT_THAT(sum.front(), Each(0));
    for (int turn = 1; turn <= 10; ++turn) {
      int expected = 0;
      for (std::size_t rank = 0; rank < count; ++rank) {
        const int value = static_cast<int>(rank) + 100 * turn;
        in[rank].assign(kElements, value);
        expected += value;
      }
      replay(graph);
      for (std::size_t rank = 0; rank < count; ++rank) {
        ASSERT_THAT(sum[rank], Each(expected)) << turn;
        ASSERT_THAT(all[rank], Each(expected)) << turn;
      }
      // Calls between replays count on where the graph has ended, and the other way round.
      on_each([&](Communicator& mine) {
        std::int32_t one = 1, out = 0;
        ASSERT_TRUE(mine.all_reduce(&one, &out, 1, Dtype::i32, Op::sum).is_ok());
        ASSERT_EQ(out, mine.ranks());
      });
    }
  }
}

TEST_F(BlockGraphs, SeveralReplaysAreInFlightAtOnce) {
  open(2);
  std::vector<float> value{1, 2};
  const Captured graph = captured([&](Communicator& mine) {
    float* const at = &value[static_cast<std::size_t>(mine.rank())];
    ASSERT_TRUE(mine.post({.collective = Collective::all_reduce,
                           .op = Op::sum,
                           .count = 1,
                           .input = at,
                           .output = at,
                           .is_in_place = true})
                    .is_ok());
  });
  std::vector<Work> works;
  for (int i = 0; i < 20; ++i) {
    for (Work& one : posted(graph)) works.push_back(one);
  }
  for (auto at = works.rbegin(); at != works.rend(); ++at) ASSERT_TRUE(tested_until_over(*at).value());
  EXPECT_THAT(value, Each(3.0F * (1 << 19)));
}

TEST_F(BlockGraphs, EachRankMayCaptureAndPostByAThreadOfItsOwn) {
  open(3);
  on_each([](Communicator& mine) {
    for (int round = 0; round < 20; ++round) {
      std::int32_t in = mine.rank() + round, out = 0;
      ASSERT_TRUE(mine.begin_capture().is_ok());
      ASSERT_TRUE(mine.post({.collective = Collective::all_reduce,
                             .dtype = Dtype::i32,
                             .op = Op::sum,
                             .count = 1,
                             .input = &in,
                             .output = &out})
                      .is_ok());
      const auto graph = mine.end_capture().value();
      for (int turn = 0; turn < 3; ++turn, ++in) {
        ASSERT_TRUE(mine.post_captured(*graph).value().wait().is_ok());
        ASSERT_EQ(out, 3 * (round + turn) + 3);
      }
    }
  });
}

TEST_F(BlockGraphs, GivenBackTheyLeaveNothing) {
  open(2);
  const auto capture = [this] {
    return captured([this](Communicator& mine) { ASSERT_TRUE(mine.post(sum(mine.rank())).is_ok()); });
  };
  replay(capture());
  const int live = device_.live;
  for (int i = 0; i < 5; ++i) replay(capture());
  EXPECT_EQ(device_.live, live);
}

// ---- what cannot be captured

TEST_F(BlockGraphs, CallsThatDifferAreAMismatchWhenTheCaptureEnds) {
  const auto ended = [this](const std::vector<Call>& zeroth, const std::vector<Call>& first) {
    open(2);
    for (const int rank : {0, 1}) EXPECT_TRUE(on(rank).begin_capture().is_ok());
    for (const Call& call : zeroth) EXPECT_TRUE(on(0).post(call).is_ok());
    for (const Call& call : first) EXPECT_TRUE(on(1).post(call).is_ok());
    EXPECT_TRUE(on(0).end_capture().is_ok());
    const Status status = on(1).end_capture().status();
    EXPECT_EQ(on(0).barrier().code(), status.code());
    EXPECT_EQ(device_.newest, 0U);
    device_.newest = 0;
    return status;
  };
  const Call barrier{.collective = Collective::barrier};
  const Status other = ended({barrier, sum(0, 4)}, {barrier, sum(1, 5)});
  EXPECT_EQ(other.code(), Code::mismatch);
  EXPECT_EQ(other.message(),
            "rank 0 and rank 1 do not agree on call 2 of what they captured: all_reduce one_shot of 4 float, sum, and "
            "all_reduce one_shot of 5 float, sum");
  EXPECT_EQ(ended({barrier}, {barrier, barrier}).message(),
            "rank 0 and rank 1 do not agree on call 2 of what they captured: nothing, and barrier dissemination");
  EXPECT_EQ(ended({}, {}).message(), "nothing was captured: a graph has one call at least");
}

TEST_F(BlockGraphs, WhatIsNoCollectiveIsNotCaptured) {
  open(2);
  float value = 0;
  EXPECT_THAT(std::string(on(0).end_capture().status().message()), HasSubstr("ends a capture that it has not begun"));
  ASSERT_TRUE(on(0).begin_capture().is_ok());
  EXPECT_EQ(on(0).begin_capture().message(), "rank 0 captures calls already: end that first");
  EXPECT_EQ(on(0).post_send(&value, 1, Dtype::f32, 1).status().message(),
            "a send cannot be captured: collectives alone can");
  EXPECT_EQ(on(0).post_recv(&value, 1, Dtype::f32, 1).status().message(),
            "a receive cannot be captured: collectives alone can");
  EXPECT_EQ(on(0).post_split(0, 0).status().message(),
            "the forming of a group cannot be captured: collectives alone can");
  EXPECT_THAT(std::string(on(0).barrier().message()), StartsWith("a call that was captured is not under way"));
}

TEST_F(BlockGraphs, AGraphAndACallAreAMismatch) {
  open(2);
  const Captured graph = captured([](Communicator& mine) {
    ASSERT_TRUE(mine.post({.collective = Collective::barrier}).is_ok());
    ASSERT_TRUE(mine.post({.collective = Collective::barrier}).is_ok());
  });
  replay(graph);
  ASSERT_TRUE(on(0).post_captured(*graph[0]).is_ok());
  const Status status = on(1).post(sum(1)).status();
  EXPECT_EQ(status.code(), Code::mismatch);
  EXPECT_EQ(status.message(),
            "rank 0 and rank 1 do not agree on operation 3: a graph of 2 calls, of which the first is barrier "
            "dissemination, and all_reduce one_shot of 4 float, sum");
}

TEST(Capturing, IsForThreadBlocks) {
  const auto domain = local::open_domain(local::shape_for(1)).value();
  const auto mine = Communicator::create(*domain, 0, {}).value();
  EXPECT_EQ(mine->begin_capture().code(), Code::unavailable);
  EXPECT_EQ(mine->begin_capture().message(), "calls are captured where ranks are thread blocks, and nowhere else");
}

// ---- graphs that do not end

constexpr milliseconds kLateInGraph(500);  // longer than ranks take that are not waited for, however busy the cores are

/// The second call of three, by the blocks' own deadline and by the host's.
TEST_F(BlockGraphs, TheCallThatWaitsInVainIsToldAsWithoutAGraph) {
  for (const bool by_host : {false, true}) {
    open(2, {.timeout = by_host ? milliseconds(1'000'000) : kLateInGraph, .hooks = {.after_bind = silent(false)}});
    const Captured graph = captured([this](Communicator& mine) {
      ASSERT_TRUE(mine.post({.collective = Collective::barrier}).is_ok());
      ASSERT_TRUE(mine.post(sum(mine.rank())).is_ok());
      ASSERT_TRUE(mine.post({.collective = Collective::barrier}).is_ok());
    });
    on_each([](Communicator& mine) { ASSERT_TRUE(mine.barrier().is_ok()); });
    for (Work& work : posted(graph)) {
      EXPECT_THAT(std::string(work.wait(by_host ? kLateInGraph : milliseconds(50'000)).message()),
                  StartsWith("rank 0 gave up: operation 3 (all_reduce one_shot of 4 float, sum): waits for phase 1 of "
                             "rank 1, lane 0\n"));
    }
    EXPECT_TRUE(device_.is_idle());
  }
}

/// A copy that is late in the third sum.
struct LateCopy {
  std::atomic<int> moves = 0;

  static void move(const KernelArguments& arguments) {
    auto& mine = *const_cast<LateCopy*>(static_cast<const LateCopy*>(arguments.context));
    if (mine.moves++ == 2 * 2) std::this_thread::sleep_for(3 * kLateInGraph);  // a sum of two ranks moves twice
    kernel_for(Dtype::f32, Op::sum)(arguments);
  }
};

/// Which of several replays has failed shows in the number of the operation: the devices count.
TEST_F(BlockGraphs, OfSeveralReplaysTheOneThatFailsIsTold) {
  const auto late = std::make_shared<LateCopy>();
  const AfterBind hook = [&late](int rank, const Call& call, BoundEntry& entry) {
    if (rank != 1 || call.collective != Collective::all_reduce) return;
    entry.kernel = &LateCopy::move;
    entry.kernel_context = late;
  };
  open(2, {.timeout = kLateInGraph, .hooks = {.after_bind = hook}});
  const Captured graph = captured([this](Communicator& mine) { ASSERT_TRUE(mine.post(sum(mine.rank())).is_ok()); });
  std::vector<std::vector<Work>> replays;
  for (int i = 0; i < 4; ++i) replays.push_back(posted(graph));
  while (!device_.is_idle()) std::this_thread::yield();
  for (const std::size_t complete : {0U, 1U}) {
    const Result<bool> tested = replays[complete].front().test();
    EXPECT_TRUE(tested.is_ok()) << tested.status().message();
  }
  for (const std::size_t lost : {2U, 3U}) {
    EXPECT_THAT(std::string(replays[lost].front().test().status().message()),
                StartsWith("rank 0 gave up: operation 3 (all_reduce one_shot of 4 float, sum): waits for phase 1 of "
                           "rank 1, lane 0\n"));
  }
}

/// Of lanes one alone is at work in a short call, so the next one may follow in the same launch.
TEST_F(BlockGraphs, ShortCallsThatFollowEachOtherShareALaunch) {
  open(2, {.teams = {.lanes = 2}});
  const auto added = [](const float* from, float* to, Count count) {
    return Call{.collective = Collective::all_reduce, .op = Op::sum, .count = count, .input = from, .output = to};
  };
  std::array<std::vector<float>, 2> numbers;
  for (auto& mine : numbers) mine.assign(4000, 1.0F);
  const Captured graph = captured([&](Communicator& mine) {
    float* const at = numbers[static_cast<std::size_t>(mine.rank())].data();
    for (const Call& call : {added(at, at + 4, 4), added(at + 4, at + 8, 4), added(at + 8, at + 12, 4),
                             added(at + 12, at + 2000, 1000), added(at + 2000, at, 4)}) {
      ASSERT_TRUE(mine.post(call).is_ok());
    }
  });
  EXPECT_EQ(device_.recorded, 3U) << "three short ones, a long one, a short one";
  replay(graph);
  for (const auto& mine : numbers) {
    EXPECT_THAT(std::vector<float>(mine.begin(), mine.begin() + 16),
                testing::ElementsAre(32, 32, 32, 32, 2, 2, 2, 2, 4, 4, 4, 4, 8, 8, 8, 8));
  }
}

TEST_F(BlockGraphs, TheCallOfALaunchThatFailsIsTold) {
  const AfterBind hook = [](int rank, const Call& call, BoundEntry& entry) {
    if (rank == 1 && call.count == 5) entry.call.full = without_signals(entry.call.full);
  };
  open(2, {.timeout = kLateInGraph, .hooks = {.after_bind = hook}});
  const Captured graph = captured([this](Communicator& mine) {
    for (const Count count : {4, 4, 5}) ASSERT_TRUE(mine.post(sum(mine.rank(), count)).is_ok());
  });
  EXPECT_EQ(device_.recorded, 1U);
  const std::vector<Work> works = posted(graph);
  EXPECT_THAT(std::string(tested_until_over(works.front()).status().message()),
              StartsWith("rank 0 gave up: operation 3 (all_reduce one_shot of 5 float, sum): waits for "));
}

TEST_F(BlockGraphs, ARankThatDoesNotPostTheGraphIsNamed) {
  open(2);
  const Captured graph =
      captured([](Communicator& mine) { ASSERT_TRUE(mine.post({.collective = Collective::barrier}).is_ok()); });
  Work alone = on(0).post_captured(*graph[0]).value();
  EXPECT_THAT(
      std::string(alone.wait(milliseconds(20)).message()),
      StartsWith("rank 0 gave up: operation 1 (a graph of 1 call, of which the first is barrier dissemination): "
                 "waits for rank 1 to call it\n"));
}

TEST_F(BlockGraphs, ADeviceThatDoesNotReplayIsAnErrorOfAllRanks) {
  open(4, {.devices = 2});
  const Captured graph = captured([this](Communicator& mine) { ASSERT_TRUE(mine.post(sum(mine.rank())).is_ok()); });
  replay(graph);
  others_[0].refuses = true;
  for (const int rank : {0, 1, 2}) ASSERT_TRUE(on(rank).post_captured(*graph[static_cast<std::size_t>(rank)]).is_ok());
  EXPECT_EQ(on(3).post_captured(*graph[3]).status().message(), "device 1: the device has failed");
  EXPECT_EQ(on(0).barrier().message(), "device 1: the device has failed");
  EXPECT_TRUE(device_.is_idle());
  others_[0].refuses = false;
}

}  // namespace
}  // namespace tutti
