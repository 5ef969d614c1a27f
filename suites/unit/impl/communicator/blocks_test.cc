// SPDX-License-Identifier: Apache-2.0
// What is different where ranks are thread blocks: one launch for a call of all ranks, posted by any thread; and what
// everybody is told when that does not come about, or does not end. What is the same for all kinds of ranks is tested
// beside them (suites/conformance/ranks.h).
#include "impl/communicator/blocks.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "impl/algorithms/algorithm.h"
#include "impl/communicator/plan_cache.h"
#include "impl/device/teams.h"
#include "impl/transports/local/domain.h"

namespace tutti {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::Each;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

/// The host's teams, with some allocations refused and all launches counted.
class WatchedTeams final : public Device {
 public:
  [[nodiscard]] std::string name() const override { return teams_->name(); }
  Result<std::byte*> allocate(std::size_t bytes) override {
    if (left == 0) return error(Code::resource, "cannot allocate {} bytes", bytes);
    if (left > 0) --left;
    ++live;
    return teams_->allocate(bytes);
  }
  Result<std::byte*> allocate_mapped(std::size_t bytes) override { return allocate(bytes); }
  void release(std::byte* memory) override {
    --live;
    teams_->release(memory);
  }
  Status write(std::byte* to, const void* from, std::size_t bytes) override { return teams_->write(to, from, bytes); }
  [[nodiscard]] int usual_threads() const override { return teams_->usual_threads(); }
  [[nodiscard]] bool needs_cores() const override { return teams_->needs_cores(); }
  Status fits(int teams, int threads) override { return teams_->fits(teams, threads); }
  Result<Ticket> launch(DeviceLaunch launch) override {
    const Result<Ticket> ticket = teams_->launch(std::move(launch));
    if (ticket.is_ok()) newest = ticket.value();
    return ticket;
  }
  Result<bool> is_complete(Ticket ticket) override { return teams_->is_complete(ticket); }

  /// Whether nothing is under way.
  [[nodiscard]] bool is_idle() { return newest == 0 || is_complete(newest).value(); }

  std::atomic<int> left = -1;  ///< allocations; below 0: as many as one likes
  std::atomic<int> live = 0;   ///< that are not released
  std::atomic<Ticket> newest = 0;

 private:
  std::unique_ptr<Device> teams_ = make_host_teams();
};

struct Opened {
  TeamShape teams = {};
  std::chrono::nanoseconds timeout = seconds(30);
  Hooks hooks = {};
};

class Blocks : public testing::Test {
 protected:
  void open(int ranks, const Opened& how = {}) {
    communicators_.clear();
    domain_ = local::open_domain(local::shape_for(ranks)).value();
    auto made = create_as_blocks(*domain_, device_, how.teams, {.timeout = how.timeout}, how.hooks);
    ASSERT_TRUE(made.is_ok()) << made.status().message();
    communicators_ = std::move(made).value();
  }
  [[nodiscard]] Communicator& on(int rank) { return *communicators_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] int ranks() const { return static_cast<int>(communicators_.size()); }

  /// Every rank by a thread of its own.
  template <class Body>
  void on_each(Body body) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks(); ++rank) threads.emplace_back([&, rank] { body(on(rank)); });
    for (std::thread& thread : threads) thread.join();
  }

  [[nodiscard]] const Schedule* schedule(Collective collective, const char* name, int root = 0) {
    const Problem problem{.collective = collective, .ranks = ranks(), .root = root};
    return &schedules_.emplace_back(schedule_of(*find_algorithm(collective, name).value(), problem));
  }
  /// A sum of floats of the fixture's own buffers.
  [[nodiscard]] Call sum(int rank, Count count = 4) {
    auto& mine = buffers_[static_cast<std::size_t>(rank)];
    mine.resize(std::max(mine.size(), static_cast<std::size_t>(2 * count)), static_cast<float>(rank + 1));
    return {.collective = Collective::all_reduce,
            .op = Op::sum,
            .count = count,
            .input = mine.data(),
            .output = mine.data() + count};
  }
  [[nodiscard]] Result<bool> tested_until_over(Work work) {
    const auto end = Clock::now() + seconds(60);
    for (;;) {
      Result<bool> tested = work.test();
      if (!tested.is_ok() || tested.value() || Clock::now() > end) return tested;
    }
  }

  WatchedTeams device_;
  std::unique_ptr<Domain> domain_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
  std::deque<Schedule> schedules_;
  std::array<std::vector<float>, 8> buffers_;
};

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

// ---- ranks that do not call

TEST_F(Blocks, ARankThatDoesNotCallIsNamedAndEveryRankAccountedFor) {
  open(3);
  on_each([](Communicator& mine) { ASSERT_TRUE(mine.barrier().is_ok()); });
  on_each([this](Communicator& mine) {
    if (mine.rank() == 2) return;
    const Status status = mine.post(sum(mine.rank())).value().wait(milliseconds(100));
    EXPECT_EQ(status.code(), Code::timeout);
    EXPECT_THAT(
        std::string(status.message()),
        AllOf(
            HasSubstr(" gave up: operation 2 (all_reduce one_shot of 4 float, sum): waits for rank 2 to call it\n"),
            HasSubstr("\n  rank 2 has not called operation 2: its last is operation 1 (barrier dissemination), complete"
                      "\n"),
            HasSubstr("\n  rank 0 has completed operation 1 (barrier dissemination), is in operation 2 (all_reduce "
                      "one_shot of 4 float, sum)"),
            HasSubstr("\n  rank 1 has completed operation 1 (barrier dissemination), is in operation 2")));
  });
  EXPECT_THAT(on(2).report(), HasSubstr("rank 2 has not called operation 2"));
  EXPECT_EQ(on(2).barrier().code(), Code::timeout) << "it comes too late";
  EXPECT_EQ(device_.newest, 1U) << "nothing was launched that could not end";
}

TEST_F(Blocks, ASendWithoutAReceiveIsSaid) {
  open(2, {.timeout = milliseconds(30)});
  float value = 0;
  Work first = on(0).post_recv(&value, 1, Dtype::f32, 1).value();
  Work second = on(0).post_recv(&value, 1, Dtype::f32, 1).value();
  EXPECT_EQ(second.position(), "receive of 1 float (4 bytes) from rank 1 waits for 1 before it");
  const Status status = first.wait();
  EXPECT_EQ(status.code(), Code::timeout);
  EXPECT_THAT(std::string(status.message()),
              StartsWith("rank 0 gave up: receive of 1 float (4 bytes) from rank 1 has no send\n"));
  open(2, {.timeout = milliseconds(30)});
  EXPECT_THAT(std::string(on(1).send(&value, 1, Dtype::f32, 0).message()),
              StartsWith("rank 1 gave up: send of 1 float (4 bytes) to rank 0 has no receive\n"));
}

TEST_F(Blocks, AGroupThatOneRankDoesNotFormIsNoGroup) {
  open(2, {.timeout = milliseconds(30)});
  const auto group = on(0).split(0, 0);
  EXPECT_EQ(group.status().code(), Code::timeout);
  EXPECT_THAT(std::string(group.status().message()),
              StartsWith("rank 0 gave up: waits for the others to form a group\n"));
}

// ---- ranks whose blocks wait in the device

Plan without_signals(const Plan& plan) {
  PlanHeader header = plan.header();
  std::vector<PlanOp> ops(plan.ops().begin(), plan.ops().end());
  std::erase_if(ops, [](const PlanOp& op) { return op.verb == Verb::signal; });
  header.ops = static_cast<std::uint32_t>(ops.size());
  header.is_exchange = false;
  return {header, ops, plan.operands(), plan.exposures()};
}
constexpr milliseconds kLate(500);  // longer than ranks take that are not waited for, however busy the cores are

/// Rank 1 announces nothing in its sums: in all, or in their last segment.
AfterBind silent(bool is_in_tail_only) {
  return [is_in_tail_only](int rank, const Call& call, BoundEntry& entry) {
    if (rank != 1 || call.collective != Collective::all_reduce) return;
    if (entry.call.has_tail) entry.call.tail = without_signals(entry.call.tail);
    if (!is_in_tail_only && entry.call.full_segments > 0) entry.call.full = without_signals(entry.call.full);
  };
}

TEST_F(Blocks, ALostSignalIsToldByTheRankThatWaitsForIt) {
  open(2, {.timeout = kLate, .hooks = {.after_bind = silent(false)}});
  std::vector<Work> works;
  for (const int rank : {0, 1}) works.push_back(on(rank).post(sum(rank)).value());
  for (const Work& work : works) {
    const Result<bool> told = tested_until_over(work);
    EXPECT_EQ(told.status().code(), Code::timeout);
    EXPECT_THAT(
        std::string(told.status().message()),
        AllOf(StartsWith("rank 0 gave up: operation 1 (all_reduce one_shot of 4 float, sum): waits for phase 1 of "
                         "rank 1, lane 0\n"),
              HasSubstr("\n  rank 0 has completed no operation, is in operation 1 "),
              HasSubstr("\n  rank 1 has completed no operation, is in operation 1 ")));
  }
  EXPECT_TRUE(device_.is_idle());
}

TEST_F(Blocks, TheLaneAndTheSegmentAreToldThatWait) {
  open(2, {.teams = {.lanes = 2}, .hooks = {.after_bind = silent(true)}});
  std::vector<Work> works;
  for (const int rank : {0, 1}) works.push_back(on(rank).post(sum(rank, 7)).value());
  EXPECT_THAT(std::string(works[0].wait(kLate).message()),
              StartsWith("rank 0 gave up: operation 2 (all_reduce one_shot of 7 float, sum, segment 2 of 2): waits for "
                         "phase 1 of rank 1, lane 1\n"));
}

TEST_F(Blocks, OfCallsThatFollowEachOtherTheOneThatFailsIsTold) {
  open(2, {.timeout = kLate, .hooks = {.after_bind = silent(false)}});
  std::vector<Work> works;
  for (const int rank : {0, 1}) {
    works.push_back(on(rank).post({.collective = Collective::barrier}).value());
    works.push_back(on(rank).post(sum(rank)).value());
    works.push_back(on(rank).post({.collective = Collective::barrier}).value());
  }
  while (!device_.is_idle()) std::this_thread::yield();
  const Result<bool> first = works[0].test();
  EXPECT_TRUE(first.is_ok()) << "it was complete before: " << first.status().message();
  for (const std::size_t later : {1U, 2U}) {
    EXPECT_THAT(std::string(works[later].test().status().message()),
                StartsWith("rank 0 gave up: operation 2 (all_reduce "));
  }
}

TEST_F(Blocks, ADeadlineOfTheHostAsksTheBlocksWhatTheyWaitFor) {
  open(2, {.timeout = seconds(1000), .hooks = {.after_bind = silent(false)}});
  on_each([](Communicator& mine) { ASSERT_TRUE(mine.barrier().is_ok()); });
  const auto begin = Clock::now();
  on_each([this](Communicator& mine) {
    const Status status = mine.post(sum(mine.rank())).value().wait(kLate);
    EXPECT_EQ(status.code(), Code::timeout);
    EXPECT_THAT(
        std::string(status.message()),
        AllOf(StartsWith("rank 0 gave up: operation 2 (all_reduce one_shot of 4 float, sum): waits for phase 1 of "
                         "rank 1, lane 0\n"),
              HasSubstr("\n  rank 0 has completed operation 1 (barrier dissemination), is in operation 2 "),
              HasSubstr("\n  rank 1 has completed operation 1 (barrier dissemination), is in operation 2 ")));
  });
  EXPECT_LT(Clock::now() - begin, seconds(100)) << "the blocks' own deadline is far away";
  EXPECT_TRUE(device_.is_idle());
}

TEST_F(Blocks, WhatEndsAtTheDeadlineIsCompleteAndTheWorldGoesOn) {
  open(2, {.hooks = {.after_bind = silent(false)}});
  constexpr Count kLong = 1 << 22;
  std::vector<float> in(kLong), out(kLong);
  Work send = on(0).post_send(in.data(), kLong, Dtype::f32, 0).value();
  Work receive = on(0).post_recv(out.data(), kLong, Dtype::f32, 0).value();
  EXPECT_TRUE(receive.wait(milliseconds(0)).is_ok()) << "it waits for nobody";
  EXPECT_TRUE(send.test().value());
  std::vector<Work> works;
  for (const int rank : {0, 1}) works.push_back(on(rank).post(sum(rank)).value());
  const auto begin = Clock::now();
  EXPECT_EQ(works[0].wait(kLate).code(), Code::timeout);
  EXPECT_GE(Clock::now() - begin, kLate) << "its blocks were told to stop before";
}

TEST_F(Blocks, WhatIsUnderWayIsCompleteWhereOnlyAnotherCallIsLate) {
  open(2);
  std::vector<Work> works;
  for (const int rank : {0, 1}) works.push_back(on(rank).post(sum(rank)).value());
  while (!device_.is_idle()) std::this_thread::yield();
  Work late = on(0).post({.collective = Collective::barrier}).value();
  EXPECT_THAT(std::string(late.wait(milliseconds(20)).message()),
              StartsWith("rank 0 gave up: operation 2 (barrier dissemination): waits for rank 1 to call it\n"));
  for (Work& work : works) EXPECT_TRUE(work.test().value());
}

// ---- what a failure leaves

TEST_F(Blocks, NothingTouchesBuffersOnceAFailureIsTold) {
  open(2);
  constexpr Count kLong = 1 << 21;
  std::vector<Work> works;
  for (const int rank : {0, 1}) works.push_back(on(rank).post(sum(rank, kLong)).value());
  (void)on(0).post({.collective = Collective::barrier});
  Call other = sum(1, kLong);
  EXPECT_EQ(on(1).post(other).status().code(), Code::mismatch);
  EXPECT_TRUE(device_.is_idle());
}

TEST_F(Blocks, ACommunicatorThatLeavesWithACallInFlightFailsIt) {
  open(3);
  std::vector<Work> works;
  for (const int rank : {0, 1}) works.push_back(on(rank).post(sum(rank)).value());
  communicators_[1] = nullptr;
  EXPECT_EQ(works[0].test().status().code(), Code::aborted);
  EXPECT_EQ(works[0].wait().message(), "rank 1 has left");
  EXPECT_EQ(on(2).barrier().message(), "rank 1 has left");
}

TEST_F(Blocks, ACommunicatorLeavesWhileItsBlocksWaitForEachOther) {
  open(2, {.timeout = seconds(1000), .hooks = {.after_bind = silent(false)}});
  for (const int rank : {0, 1}) ASSERT_TRUE(on(rank).post(sum(rank)).is_ok());
  const auto begin = Clock::now();
  communicators_.clear();
  EXPECT_LT(Clock::now() - begin, seconds(100));
  EXPECT_TRUE(device_.is_idle()) << "its plans are gone";
}

TEST_F(Blocks, ACommunicatorThatHasNothingInFlightLeavesTheOthersAlone) {
  open(3);
  on_each([](Communicator& mine) { ASSERT_TRUE(mine.barrier().is_ok()); });
  float value = 7, received = 0;
  Work send = on(0).post_send(&value, 1, Dtype::f32, 1).value();
  Work receive = on(1).post_recv(&received, 1, Dtype::f32, 0).value();
  communicators_[2] = nullptr;
  EXPECT_TRUE(tested_until_over(send).value());
  EXPECT_TRUE(tested_until_over(receive).value());
  EXPECT_EQ(received, 7);
  Work alone = on(0).post_recv(&received, 1, Dtype::f32, 2).value();
  EXPECT_THAT(std::string(alone.wait(milliseconds(20)).message()),
              AllOf(StartsWith("rank 0 gave up: receive of 1 float (4 bytes) from rank 2 has no send\n"),
                    HasSubstr("\n  rank 2 has completed operation 1 (barrier dissemination) and has left")));
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
  for (const int allocations : {0, 1, 2}) {
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
  device_.left = 3;  // that of the first group
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
