// SPDX-License-Identifier: Apache-2.0
// Where the ranks stand: what is told of each when one gives up, and before.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "impl/communicator/diagnosis.h"
#include "suites/conformance/ranks.h"

namespace tutti {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::ContainsRegex;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class Standing : public testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Standing, testing::Values(Kind::threads, Kind::processes),
                         [](const auto& kind) { return testing::PrintToString(kind.param); });

/// Until the others have made `value` of it.
void wait_for(int& common, int value) {
  const auto end = Clock::now() + seconds(20);
  while (std::atomic_ref(common).load() != value && Clock::now() < end) std::this_thread::sleep_for(milliseconds(1));
}

TEST_P(Standing, AtTheDeadlineEveryRankIsAccountedFor) {
  const Common<int> is_over;
  on_ranks(GetParam(), 3, [&](Communicator& communicator) {
    ASSERT_TRUE(communicator.barrier().is_ok());
    if (communicator.rank() == 2) {
      wait_for(*is_over, 2);
      return;
    }
    const Problem problem{.collective = Collective::all_reduce, .ranks = 3};
    const Schedule schedule = schedule_of(*find_algorithm(problem.collective, "ring").value(), problem);
    std::array<float, 300> in{}, out{};
    Call call{.collective = Collective::all_reduce, .op = Op::sum, .count = 300};
    call.input = in.data();
    call.output = out.data();
    call.schedule = &schedule;
    const Status status = communicator.post(call).value().wait(milliseconds(300));
    if (status.code() != Code::aborted) {
      EXPECT_EQ(status.code(), Code::timeout);
      const int me = communicator.rank();
      EXPECT_THAT(
          status.message(),
          AllOf(StartsWith(fmt::format("rank {} gave up: operation 2 (all_reduce ring of 300 float, sum), step ", me)),
                HasSubstr("\n  rank 2 has not called operation 2: its last is operation 1 (barrier dissemination), "
                          "complete\n  rank 0 has completed operation 1 (barrier dissemination), is in operation 2 "
                          "(all_reduce ring of 300 float, sum), step "),
                ContainsRegex("rank 0 has .*: waits for [0-9]+ bytes from rank 2\n  rank 1 has completed"),
                ContainsRegex("rank 1 has completed operation 1 .*: waits for [0-9]+ bytes from rank 0$")));
    }
    std::atomic_ref(*is_over).fetch_add(1);
  });
}

TEST_P(Standing, WhoLeftOrRepeatsAShortCallIsSaidToHaveBeenThere) {
  on_ranks(GetParam(), 2, [&](Communicator& communicator) {
    float in = 1, out = 0;
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(communicator.all_reduce(&in, &out, 1, Dtype::f32, Op::sum).is_ok());
    if (communicator.rank() == 1) return;
    Call call{.collective = Collective::all_reduce, .op = Op::sum, .count = 1};
    call.input = &in;
    call.output = &out;
    Work work = communicator.post(call).value();
    const Status status = work.wait(milliseconds(500));
    EXPECT_EQ(status.code(), Code::timeout);
    EXPECT_THAT(status.message(), HasSubstr("\n  rank 1 has left without operation 11: its last is operation 10 "
                                            "(all_reduce "));
  });
}

TEST_P(Standing, AReceiveWithoutASendIsSaid) {
  const Common<int> is_over;
  on_ranks(GetParam(), 2, [&](Communicator& communicator) {
    std::array<float, 100> values{};
    ASSERT_TRUE(communicator.barrier().is_ok());
    if (communicator.rank() == 0) {
      wait_for(*is_over, 1);
      return;
    }
    const Status status = communicator.post_recv(values.data(), 100, Dtype::f32, 0).value().wait(milliseconds(200));
    EXPECT_EQ(
        status.message(),
        "rank 1 gave up: receive of 100 float (400 bytes) from rank 0 has no send\n"
        "  rank 0 has completed operation 1 (barrier dissemination)\n"
        "  rank 1 has completed operation 1 (barrier dissemination); its receive of 100 float (400 bytes) from rank "
        "0 has no send");
    std::atomic_ref(*is_over).store(1);
  });
}

TEST_P(Standing, ASendWithoutAReceiveIsSaid) {
  const Common<int> is_over;
  on_ranks(GetParam(), 2, [&](Communicator& communicator) {
    std::vector<float> values(1000000);
    if (communicator.rank() == 0) {
      wait_for(*is_over, 1);
      return;
    }
    const Status status = communicator.post_send(values.data(), 1000000, Dtype::f32, 0).value().wait(milliseconds(200));
    EXPECT_THAT(status.message(),
                StartsWith("rank 1 gave up: send of 1000000 float (4000000 bytes) to rank 0 has no receive\n"));
    std::atomic_ref(*is_over).store(1);
  });
}

/// Ranks as tasks, of which the last does not call; `look` gets the communicators once they have waited for a while.
void without_the_last(int ranks, const std::function<void(Communicator&)>& look) {
  const auto domain = local::open_domain(local::shape_for(ranks)).value();
  std::vector<std::unique_ptr<Communicator>> communicators;
  std::vector<Work> works;
  for (int rank = 0; rank < ranks; ++rank) {
    communicators.push_back(
        Communicator::create(*domain, rank, {.waiting = Waiting::yield, .prove_plans = false}).value());
    if (rank + 1 < ranks) works.push_back(communicators.back()->post({.collective = Collective::barrier}).value());
  }
  const auto all_have_told = [&] {
    const std::vector<Progress> all = progress_of(*domain);
    return std::ranges::count(all, true, &Progress::waits) == ranks - 1;
  };
  for (const auto end = Clock::now() + seconds(20); !all_have_told() && Clock::now() < end;) {
    for (Work& work : works) ASSERT_FALSE(work.test().value());
  }
  look(*communicators.front());
}

TEST(StandingOfTasks, ThePollingRanksSayWhereTheyStand) {
  without_the_last(3, [](Communicator& communicator) {
    EXPECT_EQ(
        communicator.report(),
        "\n  rank 2 has not called operation 1: it has made no call"
        "\n  rank 0 has completed no operation, is in operation 1 (barrier dissemination), step 2 of 4: waits for "
        "phase 1 of rank 2"
        "\n  rank 1 has completed no operation, is in operation 1 (barrier dissemination), step 4 of 4: waits for "
        "phase 2 of rank 2");
  });
}

TEST(StandingOfTasks, OfSeveralRanksThatAreWaitedForTheMissingOneIsNamed) {
  const auto domain = local::open_domain(local::shape_for(3)).value();
  const auto zero = Communicator::create(*domain, 0, {.prove_plans = false}).value();
  const auto one = Communicator::create(*domain, 1, {.prove_plans = false}).value();
  const Problem problem{.collective = Collective::all_reduce, .ranks = 3};
  const Schedule schedule = schedule_of(*find_algorithm(problem.collective, "one_shot").value(), problem);
  std::array<float, 8> in{}, out{};
  Call call{.collective = Collective::all_reduce, .op = Op::sum, .count = 8};
  call.input = in.data();
  call.output = out.data();
  call.schedule = &schedule;
  (void)one->post(call).value();
  const Work here = zero->post(call).value();
  EXPECT_THAT(here.position(), EndsWith(": waits for phase 1 of rank 2"));
}

TEST(StandingOfTasks, OfManyRanksThoseFurthestBehindAreShown) {
  without_the_last(270, [](Communicator& communicator) {
    const std::string report = communicator.report();
    EXPECT_EQ(std::ranges::count(report, '\n'), 17);
    EXPECT_THAT(report, StartsWith("\n  rank 269 has not called operation 1: it has made no call\n  rank 0 has"));
    EXPECT_THAT(report, EndsWith("\n  and 254 more"));
  });
}

}  // namespace
}  // namespace tutti
