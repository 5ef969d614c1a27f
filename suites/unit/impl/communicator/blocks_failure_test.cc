// SPDX-License-Identifier: Apache-2.0
// What ranks that are thread blocks are told where a call does not come about, or does not end, and what that leaves.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/unit/impl/communicator/blocks.h"

namespace tutti {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

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

constexpr milliseconds kLate(500);  // longer than ranks take that are not waited for, however busy the cores are

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

}  // namespace
}  // namespace tutti
