// SPDX-License-Identifier: Apache-2.0
// Calls that do not fit each other, and ranks that do not call: what the others are told, word by word.
#include "impl/communicator/diagnosis.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include <gmock/gmock.h>

#include "suites/conformance/ranks.h"

namespace tutti {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class Diagnosis : public testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Diagnosis, testing::Values(Kind::threads, Kind::processes),
                         [](const auto& kind) { return testing::PrintToString(kind.param); });

constexpr Count kMost = 64;

/// What the two ranks of a test call, and how a message names it.
struct Side {
  Call call;
  const char* algorithm;
  const char* text;
};
struct Mismatch {
  const char* name;
  std::array<Side, 2> sides;
  const char* field;
  std::array<const char*, 2> values;
};

Call reduction(Count count, Dtype dtype = Dtype::f32, Op op = Op::sum) {
  return {.collective = Collective::all_reduce, .dtype = dtype, .op = op, .count = count};
}

std::vector<Mismatch> mismatches() {
  const Side eight{.call = reduction(8), .algorithm = "one_shot", .text = "all_reduce one_shot of 8 float, sum"};
  Side in_place = eight, shared = eight;
  in_place.call.is_in_place = true;
  shared.call.buffers = Buffers::shared;
  const auto reduce = [](int root, const char* text) {
    return Side{
        .call = {.collective = Collective::reduce, .dtype = Dtype::f32, .op = Op::sum, .root = root, .count = 8},
        .algorithm = "knomial",
        .text = text};
  };
  return {
      {.name = "collective",
       .sides = {{eight,
                  {.call = {.collective = Collective::barrier},
                   .algorithm = "dissemination",
                   .text = "barrier dissemination"}}},
       .field = "collective",
       .values = {"all_reduce", "barrier"}},
      {.name = "collective whose algorithm has the same name",
       .sides = {{{.call = {.collective = Collective::gather, .count = 8},
                   .algorithm = "linear",
                   .text = "gather linear of 8 float, root 0"},
                  {.call = {.collective = Collective::scatter, .count = 8},
                   .algorithm = "linear",
                   .text = "scatter linear of 8 float, root 0"}}},
       .field = "collective",
       .values = {"gather", "scatter"}},
      {.name = "root",
       .sides = {{reduce(0, "reduce knomial of 8 float, sum, root 0"),
                  reduce(1, "reduce knomial of 8 float, sum, root 1")}},
       .field = "root",
       .values = {"0", "1"}},
      {.name = "count",
       .sides = {{eight,
                  {.call = reduction(16), .algorithm = "one_shot", .text = "all_reduce one_shot of 16 float, sum"}}},
       .field = "count",
       .values = {"8", "16"}},
      {.name = "dtype",
       .sides = {{eight,
                  {.call = reduction(8, Dtype::i32),
                   .algorithm = "one_shot",
                   .text = "all_reduce one_shot of 8 int32, sum"}}},
       .field = "dtype",
       .values = {"float", "int32"}},
      {.name = "op",
       .sides = {{eight,
                  {.call = reduction(8, Dtype::f32, Op::max),
                   .algorithm = "one_shot",
                   .text = "all_reduce one_shot of 8 float, max"}}},
       .field = "op",
       .values = {"sum", "max"}},
      {.name = "placement", .sides = {{eight, in_place}}, .field = "placement", .values = {"out of place", "in place"}},
      {.name = "buffers", .sides = {{eight, shared}}, .field = "buffers", .values = {"private", "shared"}},
      {.name = "algorithm",
       .sides = {{eight, {.call = reduction(8), .algorithm = "ring", .text = "all_reduce ring of 8 float, sum"}}},
       .field = "algorithm",
       .values = {"one_shot", "ring"}},
  };
}

/// Runs the rank's side of a mismatch; a rank that finds it must say it so.
void run_side(Communicator& communicator, const Mismatch& mismatch, int& told) {
  const int me = communicator.rank(), other = 1 - me;
  const Side& mine = mismatch.sides[static_cast<std::size_t>(me)];
  const Problem problem{.collective = mine.call.collective, .ranks = 2, .root = mine.call.root};
  const Schedule schedule = schedule_of(*find_algorithm(problem.collective, mine.algorithm).value(), problem);
  const std::size_t bytes = kMost * sizeof(double);
  auto* const input = static_cast<std::byte*>(communicator.alloc_shared(bytes).value());
  auto* const output = static_cast<std::byte*>(communicator.alloc_shared(bytes).value());
  Call call = mine.call;
  call.input = input;
  call.output = call.is_in_place ? input : output;
  call.schedule = &schedule;
  const Status status = communicator.run(call);
  // A rank that finds it names itself first; the other one repeats that.
  const bool is_told = status.code() == Code::aborted;
  const int finder = is_told ? other : me, found = is_told ? me : other;
  const auto side = [&](int rank) { return mismatch.sides[static_cast<std::size_t>(rank)]; };
  const auto value = [&](int rank) { return mismatch.values[static_cast<std::size_t>(rank)]; };
  const std::string sentence = fmt::format(
      "rank {} and rank {} do not agree on operation 1: {} {} and {} (rank {} calls {}, rank {} calls {})", finder,
      found, mismatch.field, value(finder), value(found), finder, side(finder).text, found, side(found).text);
  EXPECT_EQ(status.message(), is_told ? fmt::format("rank {} failed: mismatch: {}", other, sentence) : sentence);
  if (!is_told) {
    ASSERT_EQ(status.code(), Code::mismatch) << status.message();
    std::atomic_ref(told).store(1);
  }
  communicator.free_shared(input);
  communicator.free_shared(output);
}

TEST_P(Diagnosis, AMismatchSaysTheOperationAndTheFieldThatDiffers) {
  for (const Mismatch& mismatch : mismatches()) {
    SCOPED_TRACE(mismatch.name);
    const Common<int> told;
    on_ranks(GetParam(), 2, [&](Communicator& communicator) { run_side(communicator, mismatch, *told); });
    EXPECT_EQ(*told, 1) << "nobody found it";
  }
}

// One waits for a flag, the other for a slice, and both calls were made before: only a look into the journals tells.
TEST_P(Diagnosis, CallsOfOtherMeansAreToldApartWithoutADeadline) {
  const Common<int> told;
  on_ranks(GetParam(), 2, [&](Communicator& communicator) {
    std::array<float, 8> in{}, out{};
    const Problem problem{.collective = Collective::all_reduce, .ranks = 2};
    const auto schedule = [&](const char* name) {
      return schedule_of(*find_algorithm(problem.collective, name).value(), problem);
    };
    const std::array<Schedule, 2> schedules{schedule("one_shot"), schedule("ring")};
    Call call = reduction(8);
    call.input = in.data();
    call.output = out.data();
    for (const Schedule& one : schedules) {
      call.schedule = &one;
      ASSERT_TRUE(communicator.run(call).is_ok());
    }
    const int me = communicator.rank(), other = 1 - me;
    call.schedule = &schedules[static_cast<std::size_t>(me)];
    Work work = communicator.post(call).value();
    Result<bool> tested = false;
    for (const auto end = Clock::now() + seconds(20); tested.is_ok() && Clock::now() < end;) tested = work.test();
    ASSERT_FALSE(tested.is_ok());
    if (tested.status().code() != Code::mismatch) return;
    const std::array<const char*, 2> names{"one_shot", "ring"};
    EXPECT_THAT(
        tested.status().message(),
        StartsWith(fmt::format("rank {} and rank {} do not agree on operation 3: algorithm {} and {} (", me, other,
                               names[static_cast<std::size_t>(me)], names[static_cast<std::size_t>(other)])));
    std::atomic_ref(*told).store(1);
  });
  EXPECT_EQ(*told, 1);
}

TEST_P(Diagnosis, SeveralFieldsThatDifferAreAllSaid) {
  const Mismatch mismatch{
      .name = "several",
      .sides = {
          {{.call = reduction(8, Dtype::i32, Op::max), .algorithm = "ring", .text = "all_reduce ring of 8 int32, max"},
           {.call = reduction(9), .algorithm = "one_shot", .text = "all_reduce one_shot of 9 float, sum"}}}};
  const Common<int> told;
  on_ranks(GetParam(), 2, [&](Communicator& communicator) {
    const Side& mine = mismatch.sides[static_cast<std::size_t>(communicator.rank())];
    std::array<double, kMost> input{}, output{};
    Call call = mine.call;
    call.input = input.data();
    call.output = output.data();
    const Status status = communicator.run(call);
    if (status.code() != Code::mismatch) return;
    const bool is_first = communicator.rank() == 0;
    EXPECT_THAT(status.message(),
                HasSubstr(is_first ? "operation 1: count 8 and 9, dtype int32 and float, op max and sum ("
                                   : "operation 1: count 9 and 8, dtype float and int32, op sum and max ("));
    std::atomic_ref(*told).store(1);
  });
  EXPECT_EQ(*told, 1);
}

TEST_P(Diagnosis, CountsOfAVFormSayTheBlock) {
  const Common<int> told;
  on_ranks(GetParam(), 2, [&](Communicator& communicator) {
    const bool is_first = communicator.rank() == 0;
    const std::array<Count, 2> counts{2, is_first ? 3 : 4};
    const std::array<float, 4> input{};
    std::array<float, 6> output{};
    const Status status = communicator.all_gather_v(input.data(), output.data(), {.counts = counts}, Dtype::f32);
    EXPECT_FALSE(status.is_ok());
    if (status.code() != Code::mismatch) return;
    EXPECT_THAT(status.message(),
                StartsWith(is_first ? "rank 0 and rank 1 do not agree on operation 1: counts[1] 3 and 4 ("
                                    : "rank 1 and rank 0 do not agree on operation 1: counts[1] 4 and 3 ("));
    std::atomic_ref(*told).store(1);
  });
  EXPECT_EQ(*told, 1);
}

/// One rank's part of a v form that two ranks call differently, on blocks of 2 and 3 elements.
struct VSide {
  Communicator& communicator;
  bool is_first;
  Division blocks;
  const float* in;
  float* out;
};
struct VMismatch {
  const char* field;
  std::array<const char*, 2> values;
  Status (*call)(const VSide&);
};
constexpr std::array kVMismatches{
    VMismatch{"dtype",
              {"float", "int32"},
              [](const VSide& my) {
                return my.communicator.all_gather_v(my.in, my.out, my.blocks, my.is_first ? Dtype::f32 : Dtype::i32);
              }},
    VMismatch{"op",
              {"sum", "max"},
              [](const VSide& my) {
                const Op op = my.is_first ? Op::sum : Op::max;
                return my.communicator.reduce_scatter_v(my.in, my.out, my.blocks, Dtype::f32, op);
              }},
    VMismatch{"root",
              {"0", "1"},
              [](const VSide& my) {
                return my.communicator.gather_v(my.in, my.out, my.blocks, Dtype::f32, my.is_first ? 0 : 1);
              }},
    VMismatch{"collective", {"all_gather_v", "all_gather"}, [](const VSide& my) {
                return my.is_first ? my.communicator.all_gather_v(my.in, my.out, my.blocks, Dtype::f32)
                                   : my.communicator.all_gather(my.in, my.out, 3, Dtype::f32);
              }}};

TEST_P(Diagnosis, OtherFieldsOfAVFormAreSaidAsWell) {
  const std::array<Count, 2> counts{2, 3};
  for (const VMismatch& mismatch : kVMismatches) {
    SCOPED_TRACE(mismatch.field);
    const Common<int> told;
    on_ranks(GetParam(), 2, [&](Communicator& communicator) {
      const int me = communicator.rank(), other = 1 - me;
      const std::array<float, 8> in{};
      std::array<float, 8> out{};
      const Status status = mismatch.call({communicator, me == 0, {.counts = counts}, in.data(), out.data()});
      EXPECT_FALSE(status.is_ok());
      if (status.code() != Code::mismatch) return;
      EXPECT_THAT(std::string(status.message()),
                  StartsWith(fmt::format("rank {} and rank {} do not agree on operation 1: {} {} and {} (", me, other,
                                         mismatch.field, mismatch.values[static_cast<std::size_t>(me)],
                                         mismatch.values[static_cast<std::size_t>(other)])));
      std::atomic_ref(*told).store(1);
    });
    EXPECT_EQ(*told, 1) << "nobody found it";
  }
}

// Both roots of a broadcast are done at once: they wait for nobody. The one that comes later is told all the same.
TEST_P(Diagnosis, RootsThatWaitForNobodyAreToldWhenTheCallIsNew) {
  const Common<int> told;
  on_ranks(GetParam(), 3, [&](Communicator& communicator) {
    ASSERT_TRUE(communicator.barrier().is_ok());
    if (communicator.rank() == 2) return;
    std::array<float, 16> values{};
    const Problem problem{.collective = Collective::broadcast, .ranks = 3, .root = communicator.rank()};
    const Schedule schedule = schedule_of(*find_algorithm(problem.collective, "knomial").value(), problem);
    const Status status = communicator.run({.collective = Collective::broadcast,
                                            .root = problem.root,
                                            .count = 16,
                                            .input = values.data(),
                                            .output = values.data(),
                                            .is_in_place = true,
                                            .schedule = &schedule});
    if (status.code() != Code::mismatch) return;
    const bool is_first = communicator.rank() == 0;
    EXPECT_THAT(status.message(),
                StartsWith(is_first ? "rank 0 and rank 1 do not agree on operation 2: root 0 and 1 ("
                                    : "rank 1 and rank 0 do not agree on operation 2: root 1 and 0 ("));
    std::atomic_ref(*told).store(1);
  });
  EXPECT_EQ(*told, 1);
}

TEST_P(Diagnosis, GroupsNameTheirRanksAndTheWorlds) {
  const Common<int> told;
  on_ranks(GetParam(), 3, [&](Communicator& world) {
    const auto group = world.new_group(std::array{2, 1}).value();
    if (group == nullptr) return;
    std::array<float, 4> in{}, out{};
    const bool is_first = world.rank() == 2;
    const Status status = group->all_reduce(in.data(), out.data(), is_first ? 3 : 4, Dtype::f32, Op::sum);
    EXPECT_FALSE(status.is_ok());
    if (status.code() != Code::mismatch) return;
    const std::string zero = "rank 0 of the group (rank 2 of the world)",
                      one = "rank 1 of the group (rank 1 of the world)";
    EXPECT_THAT(status.message(),
                StartsWith(is_first ? zero + " and " + one + " do not agree on operation 1: count 3 and 4 ("
                                    : one + " and " + zero + " do not agree on operation 1: count 4 and 3 ("));
    std::atomic_ref(*told).store(1);
  });
  EXPECT_EQ(*told, 1);
}

/// Two ranks as tasks, which have made a barrier and a sum together.
class TwoTasks : public testing::Test {
 protected:
  TwoTasks() {
    for (const int rank : {0, 1}) {
      ranks_.push_back(Communicator::create(*domain_, rank, {.waiting = Waiting::yield, .prove_plans = false}).value());
    }
    sum_.input = &in_;
    sum_.output = &out_;
    for (const Call& call : {barrier_, sum_}) {
      Work zero = ranks_[0]->post(call).value(), one = ranks_[1]->post(call).value();
      while (!zero.test().value() || !one.test().value()) {
      }
    }
  }

  /// What `rank` is told when all of these are posted: each has then seen what the other makes next.
  [[nodiscard]] std::string told(std::size_t rank, const std::array<std::vector<Call>, 2>& calls) {
    std::array<std::vector<Work>, 2> works;
    for (const std::size_t poster : {1 - rank, rank}) {
      for (const Call& call : calls[poster]) works[poster].push_back(ranks_[poster]->post(call).value());
    }
    return std::string(works[rank].front().test().status().message());
  }

  std::unique_ptr<Domain> domain_ = local::open_domain(local::shape_for(2)).value();
  std::vector<std::unique_ptr<Communicator>> ranks_;
  float in_ = 1, out_ = 0;
  Call barrier_{.collective = Collective::barrier};
  Call sum_ = reduction(1);
};

TEST_F(TwoTasks, AreToldThatTheyMakeCallsInAnotherOrder) {
  EXPECT_THAT(told(1, {{{sum_, barrier_}, {barrier_, sum_}}}),
              AllOf(StartsWith("rank 1 and rank 0 do not agree on operation 3: collective barrier and all_reduce ("),
                    EndsWith("; they make these two calls in another order")));
}

TEST_F(TwoTasks, AreToldThatTheTellerIsAhead) {
  EXPECT_THAT(
      told(1, {{{sum_, barrier_}, {barrier_}}}),
      EndsWith("; rank 1's operation 3 is rank 0's operation 4: it has left out a call, or makes them in another "
               "order"));
}

TEST_F(TwoTasks, AreToldThatTheOtherIsAhead) {
  EXPECT_THAT(
      told(0, {{{sum_, barrier_}, {barrier_}}}),
      EndsWith("; rank 1's operation 3 is rank 0's operation 4: it has left out a call, or makes them in another "
               "order"));
}

TEST_F(TwoTasks, AreToldThatOneRepeatsACall) {
  EXPECT_THAT(told(1, {{{barrier_}, {sum_}}}), EndsWith("; rank 1 calls once more what both called as operation 2"));
}

TEST_F(TwoTasks, AreToldThatTheOtherRepeatsACall) {
  EXPECT_THAT(told(0, {{{barrier_}, {sum_}}}), EndsWith("; rank 1 calls once more what both called as operation 2"));
}

TEST_F(TwoTasks, NoLongerSayWhatTheyWaitedForWhenItIsOver) {
  float value = 0;
  Work receive = ranks_[0]->post_recv(&value, 1, Dtype::f32, 1).value();
  const auto has_told = [&] { return ranks_[1]->report().find("its receive of 1 float") != std::string::npos; };
  for (const auto end = Clock::now() + seconds(20); !has_told() && Clock::now() < end;) {
    ASSERT_FALSE(receive.test().value());
  }
  ASSERT_TRUE(has_told());
  Work send = ranks_[1]->post_send(&in_, 1, Dtype::f32, 0).value();
  Work barrier = ranks_[0]->post(barrier_).value();
  EXPECT_FALSE(barrier.test().value()) << "it moves the receive as well";
  EXPECT_TRUE(receive.test().value());
  EXPECT_TRUE(send.test().value());
  EXPECT_FALSE(has_told());
}

// Rank 3 waits for rank 2, which has not called; that rank 0 has made another call, and is done with it, is nobody's
// affair until the time is over.
TEST(DiagnosisAsTasks, AtTheDeadlineARankThatMadeAnotherCallIsNamedWhereverItIs) {
  constexpr int kRanks = 4;
  const auto domain = local::open_domain(local::shape_for(kRanks)).value();
  std::array<std::unique_ptr<Communicator>, kRanks> ranks;
  std::array<std::vector<float>, kRanks> values;
  std::vector<Schedule> schedules;
  for (const int root : {0, 1}) {
    const Problem problem{.collective = Collective::broadcast, .ranks = kRanks, .root = root};
    schedules.push_back(schedule_of(*find_algorithm(problem.collective, "chain").value(), problem));
  }
  const auto post = [&](std::size_t rank, int root) {
    return ranks[rank]
        ->post({.collective = Collective::broadcast,
                .root = root,
                .count = 16,
                .input = values[rank].data(),
                .output = values[rank].data(),
                .is_in_place = true,
                .schedule = &schedules[static_cast<std::size_t>(root)]})
        .value();
  };
  std::vector<Work> works;
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    ranks[rank] = Communicator::create(*domain, static_cast<int>(rank), {.prove_plans = false}).value();
    values[rank].resize(16);
    for (const int root : {0, 1}) works.push_back(post(rank, root));
  }
  const auto is_done = [](Work& work) { return work.test().value(); };
  while (std::ranges::count_if(works, is_done) < std::ssize(works)) {
  }
  ASSERT_TRUE(post(0, 0).test().value()) << "the root of a chain waits for nobody";
  const Status status = post(3, 1).wait(milliseconds(200));
  EXPECT_EQ(status.code(), Code::mismatch);
  EXPECT_THAT(std::string(status.message()),
              StartsWith("rank 3 and rank 0 do not agree on operation 3: root 1 and 0 (rank 3 calls "));
}

}  // namespace
}  // namespace tutti
