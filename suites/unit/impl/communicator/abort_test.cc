// SPDX-License-Identifier: Apache-2.0
// How a communicator ends for all its ranks, in the same words; and a wait that ends nothing.
#include <chrono>
#include <string>
#include <thread>

#include <gmock/gmock.h>

#include "impl/transports/fake/domain.h"
#include "suites/conformance/ranks.h"
#include "suites/unit/impl/communicator/hosts.h"

namespace tutti {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class Abort : public testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Abort, testing::Values(Kind::threads, Kind::processes, Kind::blocks, Kind::devices),
                         [](const auto& kind) { return testing::PrintToString(kind.param); });

TEST_P(Abort, EndsWhatIsPendingOnAllRanksInTheSameWords) {
  on_ranks(GetParam(), 3, [](Communicator& communicator) {
    Status status = communicator.barrier();  // the abort of rank 0 may end it on the others
    if (communicator.rank() == 0) {
      ASSERT_TRUE(status.is_ok());
      ASSERT_TRUE(communicator.abort(2, "its process (pid 4711) is gone").is_ok());
      status = communicator.barrier();
    } else if (communicator.rank() == 1) {
      if (status.is_ok()) status = communicator.barrier();
    } else {
      while (status.is_ok()) status = communicator.barrier();
    }
    EXPECT_EQ(status.code(), Code::aborted);
    EXPECT_EQ(status.message(), "rank 2 failed: its process (pid 4711) is gone");
  });
}

TEST_P(Abort, OfARankOutOfRangeIsRefused) {
  on_ranks(GetParam(), 2, [](Communicator& communicator) {
    EXPECT_EQ(communicator.abort(2, "x").message(), "abort because of rank 2, which is out of range: 0 to 1");
    EXPECT_TRUE(communicator.barrier().is_ok());
  });
}

TEST_P(Abort, TheFirstFailureStays) {
  on_ranks(GetParam(), 2, [](Communicator& communicator) {
    Status status = communicator.barrier();  // the abort of rank 1 may end it on the other
    if (communicator.rank() == 1) {
      ASSERT_TRUE(status.is_ok());
      ASSERT_TRUE(communicator.abort(0, "one").is_ok());
      ASSERT_TRUE(communicator.abort(1, "two").is_ok());
    }
    while (status.is_ok()) status = communicator.barrier();
    EXPECT_EQ(status.message(), "rank 0 failed: one");
    ASSERT_TRUE(communicator.abort(1, "three").is_ok());
    EXPECT_EQ(communicator.barrier().message(), "rank 0 failed: one");
  });
}

TEST(AbortText, ThatIsTooLongIsCutAlikeOnAllRanks) {
  on_threads(2, [](Communicator& communicator) {
    Status status = communicator.barrier();  // the abort of rank 1 may end it on the other
    if (communicator.rank() == 1) {
      ASSERT_TRUE(status.is_ok());
      ASSERT_TRUE(communicator.abort(0, std::string(5000, 'x')).is_ok());
    }
    while (status.is_ok()) status = communicator.barrier();
    EXPECT_THAT(status.message(), StartsWith("rank 0 failed: xxxx"));
    EXPECT_EQ(status.message().size(), 760U);
  });
}

TEST(AbortOnHosts, TheOtherHostsAreToldTheText) {
  const DomainShape shape = shape_across_hosts(4, 2, 0);
  RanksOn world(fake::open_domain(shape, {}).value());
  Work pending = world.on(3).post({.collective = Collective::barrier}).value();
  Work beside = world.on(0).post({.collective = Collective::barrier}).value();
  ASSERT_TRUE(world.on(1).abort(1, "out of patience").is_ok());
  for (Work* const work : {&pending, &beside}) {
    const Status status = work->wait(seconds(20));
    EXPECT_EQ(status.code(), Code::aborted);
    EXPECT_EQ(status.message(), "rank 1 on host 0 failed: out of patience");
  }
}

class WaitFor : public testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Ranks, WaitFor, testing::Values(Kind::threads, Kind::processes, Kind::blocks, Kind::devices),
                         [](const auto& kind) { return testing::PrintToString(kind.param); });

TEST_P(WaitFor, IsFalseAtItsEndAndTheCommunicatorGoesOn) {
  on_ranks(GetParam(), 2, [](Communicator& communicator) {
    if (communicator.rank() == 0) {
      Work work = communicator.post({.collective = Collective::barrier}).value();
      Result<bool> is_done = work.wait_for(milliseconds(0));
      ASSERT_TRUE(is_done.is_ok()) << is_done.status().message();
      while (is_done.is_ok() && !is_done.value()) is_done = work.wait_for(milliseconds(5));
      ASSERT_TRUE(is_done.is_ok()) << is_done.status().message();
    } else {
      std::this_thread::sleep_for(milliseconds(50));
      Work work = communicator.post({.collective = Collective::barrier}).value();
      const Result<bool> is_done = work.wait_for(std::chrono::nanoseconds::max());
      ASSERT_TRUE(is_done.is_ok()) << is_done.status().message();
      EXPECT_TRUE(is_done.value());
    }
    EXPECT_TRUE(communicator.barrier().is_ok());
  });
}

TEST(WaitForAsTasks, IsFalseWhereAnotherRankHasNotCalled) {
  const auto domain = local::open_domain(local::shape_for(2)).value();
  const auto first = Communicator::create(*domain, 0, {.waiting = Waiting::spin}).value();
  const auto second = Communicator::create(*domain, 1, {}).value();
  Work work = first->post({.collective = Collective::barrier}).value();
  for (const milliseconds patience : {milliseconds(0), milliseconds(30)}) {
    const Result<bool> is_done = work.wait_for(patience);
    ASSERT_TRUE(is_done.is_ok()) << is_done.status().message();
    EXPECT_FALSE(is_done.value());
  }
  Work other = second->post({.collective = Collective::barrier}).value();
  EXPECT_TRUE(work.wait_for(seconds(20)).value());
  EXPECT_TRUE(other.wait_for(seconds(20)).value());
}

TEST(WaitForAsTasks, FailuresAreToldAtItsEnd) {
  const auto domain = local::open_domain(local::shape_for(2)).value();
  const auto first = Communicator::create(*domain, 0, {}).value();
  const auto second = Communicator::create(*domain, 1, {}).value();
  Work work = first->post({.collective = Collective::barrier}).value();
  ASSERT_TRUE(second->abort(1, "enough").is_ok());
  EXPECT_EQ(work.wait_for(milliseconds(0)).status().message(), "rank 1 failed: enough");
}

}  // namespace
}  // namespace tutti
