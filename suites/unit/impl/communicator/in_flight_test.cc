// SPDX-License-Identifier: Apache-2.0
// Many operations in flight on one communicator, waited for in any order, on all kinds of ranks.
#include <algorithm>
#include <random>
#include <vector>

#include <gmock/gmock.h>

#include "suites/conformance/ranks.h"

namespace tutti {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::int32_t flight_element(int rank, Count index, int call) {
  return static_cast<std::int32_t>((rank + 1) * 1000003 + static_cast<int>(index) * 7919 + call * 104729);
}

/// One call of a sequence that all ranks make alike: what it is follows from its number.
class Flight {
 public:
  Flight(Communicator& communicator, int number, const Schedule& channels)
      : rank_(communicator.rank()), ranks_(communicator.ranks()), number_(number) {
    static constexpr Collective kCollectives[] = {Collective::all_reduce, Collective::broadcast, Collective::all_to_all,
                                                  Collective::all_gather, Collective::all_reduce};
    static constexpr Count kCounts[] = {1, 500, 40, 64, 30000};
    const int kind = number % 5;
    call_ = {.collective = kCollectives[kind],
             .dtype = Dtype::i32,
             .op = is_reducing(kCollectives[kind]) ? Op::sum : Op::none,
             .root = kCollectives[kind] == Collective::broadcast ? number % ranks_ : 0,
             .count = (number * 37) % kCounts[kind],
             .schedule = kCollectives[kind] == Collective::all_to_all ? &channels : nullptr};
    const Problem problem = this->problem();
    input_.resize(static_cast<std::size_t>(input_blocks(problem, rank_) * call_.count));
    output_.resize(static_cast<std::size_t>(output_blocks(problem, rank_) * call_.count), -1);
    for (std::size_t i = 0; i < input_.size(); ++i) input_[i] = flight_element(rank_, static_cast<Count>(i), number);
    call_.input = input_.data();
    call_.output = output_.data();
    work_ = communicator.post(call_);
  }

  [[nodiscard]] Work& work() { return work_.value(); }
  [[nodiscard]] const Status& posted() { return posted_ = work_.status(); }

  void expect_right() const {
    for (int block = 0; block < output_blocks(problem(), rank_); ++block) {
      const Origin origin = origin_of(problem(), rank_, block);
      for (Count i = 0; i < call_.count; ++i) {
        std::uint32_t expected = 0;
        for (int rank = 0; rank < ranks_; ++rank) {
          if (!origin.has(rank)) continue;
          expected += static_cast<std::uint32_t>(flight_element(rank, origin.block * call_.count + i, number_));
        }
        ASSERT_EQ(static_cast<std::uint32_t>(output_[static_cast<std::size_t>(block * call_.count + i)]), expected)
            << "call " << number_ << " rank " << rank_ << " block " << block << " element " << i;
      }
    }
  }

 private:
  [[nodiscard]] Problem problem() const {
    return {.collective = call_.collective, .ranks = ranks_, .root = call_.root};
  }

  int rank_, ranks_, number_;
  Call call_;
  std::vector<std::int32_t> input_, output_;
  Result<Work> work_ = Status();
  Status posted_;
};

Schedule pairwise(int ranks) {
  const Problem problem{.collective = Collective::all_to_all, .ranks = ranks};
  return schedule_of(*find_algorithm(problem.collective, "pairwise").value(), problem);
}

/// Tests all of them in turn until all are complete.
void poll(std::vector<Work>& works) {
  const auto is_pending = [](Work& work) { return !work.test().value(); };
  while (std::ranges::count_if(works, is_pending) > 0) continue;
}

/// `calls` calls with `depth` in flight; each rank waits for one of them of its own choice.
void fly(Communicator& communicator, int depth, int calls) {
  std::mt19937 random(static_cast<unsigned>(depth * 100 + communicator.rank()));
  const Schedule channels = pairwise(communicator.ranks());
  std::vector<std::unique_ptr<Flight>> flights;
  for (int number = 0; number < calls || !flights.empty();) {
    if (number < calls && static_cast<int>(flights.size()) < depth) {
      flights.push_back(std::make_unique<Flight>(communicator, number++, channels));
      ASSERT_TRUE(flights.back()->posted().is_ok()) << flights.back()->posted().message();
      continue;
    }
    const auto chosen = flights.begin() + static_cast<std::ptrdiff_t>(random() % flights.size());
    const Status status = (*chosen)->work().wait(seconds(30));
    ASSERT_TRUE(status.is_ok()) << status.message();
    (*chosen)->expect_right();
    if (testing::Test::HasFatalFailure()) return;
    flights.erase(chosen);
  }
}

class InFlight : public testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Ranks, InFlight, testing::Values(Kind::threads, Kind::processes, Kind::blocks, Kind::devices),
                         [](const auto& kind) { return testing::PrintToString(kind.param); });

TEST_P(InFlight, CallsAreWaitedForInAnyOrder) {
  for (const int depth : {1, 2, 4, 32}) {
    on_ranks(GetParam(), 4, [depth](Communicator& communicator) { fly(communicator, depth, 120); });
  }
}

TEST(InFlightAsTasks, CallsAreWaitedForInAnyOrder) {
  constexpr int kRanks = 4;
  for (const int depth : {1, 2, 4, 32}) {
    const auto domain = local::open_domain(local::shape_for(kRanks)).value();
    std::mt19937 random(static_cast<unsigned>(depth));
    const Schedule channels = pairwise(kRanks);
    std::vector<std::unique_ptr<Communicator>> communicators;
    for (int rank = 0; rank < kRanks; ++rank) {
      communicators.push_back(Communicator::create(*domain, rank, {.prove_plans = false}).value());
    }
    std::vector<std::vector<std::unique_ptr<Flight>>> flights(kRanks);
    std::vector<int> posted(kRanks);
    for (int complete = 0; complete < kRanks * 100;) {
      const auto rank = random() % kRanks;
      auto& mine = flights[rank];
      if (posted[rank] < 100 && static_cast<int>(mine.size()) < depth) {
        mine.push_back(std::make_unique<Flight>(*communicators[rank], posted[rank]++, channels));
        continue;
      }
      if (mine.empty()) continue;
      const auto chosen = mine.begin() + static_cast<std::ptrdiff_t>(random() % mine.size());
      const Result<bool> done = (*chosen)->work().test();
      ASSERT_TRUE(done.is_ok()) << done.status().message();
      if (!done.value()) continue;
      (*chosen)->expect_right();
      if (testing::Test::HasFatalFailure()) return;
      mine.erase(chosen);
      ++complete;
    }
  }
}

TEST_P(InFlight, HundredsMayBePostedAtOnce) {
  on_ranks(GetParam(), 3, [](Communicator& communicator) {
    constexpr int kCalls = 500;
    std::vector<float> in(kCalls, static_cast<float>(communicator.rank())), out(kCalls);
    std::vector<Work> works;
    for (std::size_t i = 0; i < kCalls; ++i) {
      works.push_back(
          communicator
              .post(
                  {.collective = Collective::all_reduce, .op = Op::sum, .count = 1, .input = &in[i], .output = &out[i]})
              .value());
    }
    for (std::size_t i = kCalls; i-- > 0;) ASSERT_TRUE(works[i].wait(seconds(30)).is_ok());
    EXPECT_THAT(out, testing::Each(3.0F));
  });
}

TEST(InFlight, OperationsOnFlagsAndScratchOverlap) {
  // Rank 1 enters the second barrier before the first is complete: it announces both, then hears both.
  const auto domain = local::open_domain(local::shape_for(2)).value();
  const auto first = Communicator::create(*domain, 0, {.prove_plans = false}).value();
  const auto second = Communicator::create(*domain, 1, {.prove_plans = false}).value();
  std::vector<Work> works;
  for (int i = 0; i < 3; ++i) works.push_back(first->post({.collective = Collective::barrier}).value());
  EXPECT_THAT(works[0].position(), testing::HasSubstr("operation 1 (barrier dissemination), step 2"));
  EXPECT_THAT(works[1].position(), testing::HasSubstr("operation 2 (barrier dissemination), step 2"))
      << "K/2 operations that wait for everybody are under way";
  EXPECT_THAT(works[2].position(), testing::HasSubstr("waits for operations before it")) << "and no more";
  for (int i = 0; i < 3; ++i) works.push_back(second->post({.collective = Collective::barrier}).value());
  poll(works);
}

TEST(InFlight, OperationsOnChannelsWaitForThePreviousOne) {
  const auto domain = local::open_domain(local::shape_for(2)).value();
  const auto first = Communicator::create(*domain, 0, {.prove_plans = false}).value();
  const auto second = Communicator::create(*domain, 1, {.prove_plans = false}).value();
  const Schedule channels = pairwise(2);
  const std::vector<float> in(2);
  std::vector<std::vector<float>> outs(4, std::vector<float>(2));
  const auto post = [&](Communicator& communicator, std::vector<float>& out) {
    return communicator
        .post({.collective = Collective::all_to_all,
               .count = 1,
               .input = in.data(),
               .output = out.data(),
               .schedule = &channels})
        .value();
  };
  std::vector<Work> works{post(*first, outs[0]), post(*first, outs[1])};
  EXPECT_THAT(works[1].position(), testing::HasSubstr("waits for operations before it, first operation 1"));
  for (std::size_t i : {2U, 3U}) works.push_back(post(*second, outs[i]));
  poll(works);
}

TEST(InFlight, ACallThatIsRepeatedAfterOthersWereInFlightIsTheSameCall) {
  // What the fast path of a repeated call finds prepared must be that call, whichever was walked last.
  on_threads(2, [](Communicator& communicator) {
    float a[2] = {1, 0}, b[2] = {10, 0};
    const Call call_a{.collective = Collective::all_reduce, .op = Op::sum, .count = 1, .input = a, .output = a + 1};
    const Call call_b{.collective = Collective::all_reduce, .op = Op::sum, .count = 1, .input = b, .output = b + 1};
    for (int i = 0; i < 200; ++i) {
      Work works[] = {communicator.post(call_a).value(), communicator.post(call_b).value()};
      ASSERT_TRUE(works[1].wait(seconds(10)).is_ok());
      ASSERT_TRUE(works[0].wait(seconds(10)).is_ok());
      a[1] = b[1] = -1;
      ASSERT_TRUE(communicator.run(call_b).is_ok());
      ASSERT_EQ(b[1], 20);
      ASSERT_EQ(a[1], -1) << i;
      b[1] = -1;
      ASSERT_TRUE(communicator.run(call_b).is_ok());
      ASSERT_EQ(b[1], 20);
    }
  });
}

TEST(InFlight, ACallThatIsRepeatedAfterAnOlderOneWasWalkedLastIsTheSameCall) {
  // The same where it is sure to happen: of a ring and a later one_shot, rank 0 completes the ring last.
  const auto domain = local::open_domain(local::shape_for(2)).value();
  const CommunicatorOptions spinning{.waiting = Waiting::spin, .prove_plans = false};
  const auto first = Communicator::create(*domain, 0, spinning).value();
  const auto second = Communicator::create(*domain, 1, spinning).value();
  const Problem problem{.collective = Collective::all_reduce, .ranks = 2};
  const Schedule ring = schedule_of(*find_algorithm(problem.collective, "ring").value(), problem);
  const Schedule one_shot = schedule_of(*find_algorithm(problem.collective, "one_shot").value(), problem);
  float a[2][2] = {{1, -1}, {1, -1}}, b[2][2] = {{10, -1}, {10, -1}};  // [rank]: input, output
  const auto call = [&](float* at, const Schedule& schedule) {
    return Call{.collective = problem.collective,
                .op = Op::sum,
                .count = 1,
                .input = at,
                .output = at + 1,
                .schedule = &schedule};
  };
  std::vector<Work> others{second->post(call(a[1], ring)).value(), second->post(call(b[1], one_shot)).value()};
  Work older = first->post(call(a[0], ring)).value();
  Work later = first->post(call(b[0], one_shot)).value();
  ASSERT_EQ(later.position(), "complete");
  ASSERT_NE(older.position(), "complete");
  poll(others);
  ASSERT_TRUE(older.wait(seconds(10)).is_ok());
  a[0][1] = b[0][1] = -1;
  Work again = second->post(call(b[1], one_shot)).value();
  ASSERT_TRUE(first->run(call(b[0], one_shot)).is_ok());
  ASSERT_TRUE(again.wait(seconds(10)).is_ok());
  EXPECT_EQ(b[0][1], 20);
  EXPECT_EQ(a[0][1], -1);
}

TEST(InFlight, ACommunicatorThatLeavesItsOperationsAbortsThem) {
  const auto domain = local::open_domain(local::shape_for(2)).value();
  const auto first = Communicator::create(*domain, 0, {.prove_plans = false}).value();
  auto second = Communicator::create(*domain, 1, {.prove_plans = false}).value();
  float in = 1, out = 0;
  const Call call{.collective = Collective::all_reduce, .op = Op::sum, .count = 1, .input = &in, .output = &out};
  ASSERT_TRUE(second->post(call).is_ok());
  ASSERT_TRUE(second->post({.collective = Collective::barrier}).is_ok());
  second.reset();
  ASSERT_TRUE(first->run(call).is_ok()) << "it was announced";
  ASSERT_TRUE(first->barrier().is_ok());
  const Status status = first->barrier();
  EXPECT_EQ(status.code(), Code::aborted);
  EXPECT_EQ(status.message(), "rank 1 has left");
}

}  // namespace
}  // namespace tutti
