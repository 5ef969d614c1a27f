// SPDX-License-Identifier: Apache-2.0
// What is told is what happens: every schedule, followed on its example, leaves the buffers that a real run leaves.
#include "harness/explain/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/explain/real_run.h"

namespace tutti::harness::explain {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

const Algorithm& algorithm_named(Collective collective, std::string_view name) {
  const auto found = find_algorithm(collective, name);
  EXPECT_TRUE(found.is_ok()) << name;
  return *found.value();
}

class EveryAlgorithm : public testing::TestWithParam<const Algorithm*> {};

/// `collective` is the algorithm's, or a v form of it.
void expect_told_as_it_runs(const Algorithm& algorithm, Collective collective) {
  for (int ranks = 1; ranks <= kMostExplained; ++ranks) {
    Problem problem{algorithm.collective, ranks, is_rooted(collective) ? ranks - 1 : 0};
    const Schedule schedule = schedule_of(algorithm, problem);
    problem.collective = collective;
    if (!has_data(collective)) {
      EXPECT_TRUE(replay(schedule, {.problem = problem}).is_ok());
      continue;
    }
    const std::vector<Op> ops =
        is_reducing(collective) ? std::vector{Op::avg, Op::premul_sum, Op::bxor} : std::vector{Op::none};
    for (const Op op : ops) {
      if (op != Op::none && !takes_op(collective, op)) continue;
      SCOPED_TRACE(fmt::format("{} ranks, {}", ranks, to_string(op)));
      const auto example = example_of(algorithm, problem, Dtype::i32, op);
      ASSERT_TRUE(example.is_ok()) << example.status().message();
      const auto told = replay(schedule, example.value());
      ASSERT_TRUE(told.is_ok()) << told.status().message();
      const auto run = run_example(example.value(), schedule);
      ASSERT_TRUE(run.is_ok()) << run.status().message();
      EXPECT_EQ(run.value().wrong, 0) << run.value().first_wrong;
      const bool needs_two = has_window(collective) || collective == Collective::exscan;  // for anybody to get anything
      EXPECT_EQ(run.value().checked > 0, ranks > 1 || !needs_two);
      for (std::size_t rank = 0; rank < run.value().after.size(); ++rank) {
        EXPECT_EQ(told.value().output[rank], run.value().after[rank].output) << "rank " << rank;
        EXPECT_EQ(run.value().before[rank].input, run.value().after[rank].input);
      }
    }
  }
}

TEST_P(EveryAlgorithm, IsToldAsItRuns) { expect_told_as_it_runs(*GetParam(), GetParam()->collective); }

TEST_P(EveryAlgorithm, IsToldAsItRunsWithBlocksOfOtherLengthsWhereItTakesThem) {
  for (const Collective collective : every_collective()) {
    if (!has_counts(collective) || base_of(collective) != GetParam()->collective || !GetParam()->takes_counts) continue;
    expect_told_as_it_runs(*GetParam(), collective);
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryAlgorithm, testing::ValuesIn(all_algorithms().begin(), all_algorithms().end()),
                         [](const auto& instance) {
                           return fmt::format("{}_{}", to_string(instance.param->collective), instance.param->name);
                         });

TEST(Example, HasTheNumbersOfTheTutorials) {
  const auto outputs = [](Collective collective, int ranks, Op op = Op::none) {
    const Problem problem{collective, ranks, 0};
    const Algorithm& algorithm = *algorithms_of(collective).front();
    const auto run =
        run_example(example_of(algorithm, problem, Dtype::f32, op).value(), schedule_of(algorithm, problem));
    std::vector<Numbers> list;
    for (const Pair& pair : run.value().after) list.push_back(pair.output);
    return list;
  };
  EXPECT_THAT(outputs(Collective::reduce, 4, Op::sum), ElementsAre(Each(4), IsEmpty(), IsEmpty(), IsEmpty()));
  EXPECT_THAT(outputs(Collective::scatter, 4),
              ElementsAre(ElementsAre(1), ElementsAre(2), ElementsAre(3), ElementsAre(4)));
  EXPECT_THAT(outputs(Collective::gather, 4)[0], ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(outputs(Collective::all_gather, 2), Each(ElementsAre(1, 2, 3, 4)));
  EXPECT_THAT(outputs(Collective::reduce_scatter, 3, Op::sum),
              ElementsAre(ElementsAre(6, 12), ElementsAre(14, 56), ElementsAre(36, 288)));
}

TEST(Example, IsRefusedWhereItsNumbersAreNotExact) {
  const Problem problem{Collective::all_reduce, 8, 0};
  const Algorithm& ring = algorithm_named(Collective::all_reduce, "ring");
  const auto refused = example_of(ring, problem, Dtype::bf16, Op::prod);
  EXPECT_EQ(refused.status().code(), Code::invalid_argument);
  EXPECT_THAT(refused.status().message(), testing::HasSubstr("bfloat16 holds whole numbers up to 256 only"));
  EXPECT_THAT(refused.status().message(), testing::HasSubstr("did you mean 'double', or fewer ranks?"));
  EXPECT_TRUE(example_of(ring, problem, Dtype::f64, Op::prod).is_ok());
  const Algorithm& direct = algorithm_named(Collective::reduce_scatter, "direct");
  const auto beyond_all = example_of(direct, {Collective::reduce_scatter, 8, 0}, Dtype::f64, Op::prod);
  EXPECT_THAT(beyond_all.status().message(), testing::EndsWith("did you mean fewer ranks?")) << "double is what it is";
}

TEST(Replay, SaysWhoNeverGetsOn) {
  const Problem problem{Collective::broadcast, 2, 0};
  const Algorithm& direct = algorithm_named(Collective::broadcast, "direct");
  Schedule schedule = schedule_of(direct, problem);
  const auto step = schedule.step;
  schedule.step = [step](int rank, int index) {
    Step one = step(rank, index);
    if (rank == 0 && one.verb == Verb::signal) one.phase = 7;
    return one;
  };
  const auto told = replay(schedule, example_of(direct, problem, Dtype::f32, Op::none).value());
  EXPECT_EQ(told.status().code(), Code::refuted);
  EXPECT_THAT(told.status().message(), testing::HasSubstr("never gets past step"));
}

TEST(RealRun, FindsWhatIsWrong) {
  const Problem problem{Collective::all_gather, 2, 0};
  const Algorithm& direct = algorithm_named(Collective::all_gather, "direct");
  const Example example = example_of(direct, problem, Dtype::f32, Op::none).value();
  Schedule schedule = schedule_of(direct, problem);
  const auto step = schedule.step;
  schedule.step = [step](int rank, int index) {  // rank 0 takes its own numbers for rank 1's
    Step one = step(rank, index);
    if (rank == 0 && index == 3) one.sources = {input(0, unit(0))};
    return one;
  };
  EXPECT_EQ(run_example(example, schedule).status().code(), Code::refuted);
  const auto run = run_example(example, schedule, false);
  ASSERT_TRUE(run.is_ok()) << run.status().message();
  EXPECT_EQ(run.value().wrong, 2);
  EXPECT_EQ(run.value().first_wrong, "element 2 of rank 0's output is 1, and should be 3");
}

TEST(RealRun, FindsAGapThatWasWritten) {
  const Problem problem{Collective::all_gather_v, 3, 0};
  const Algorithm& ring = algorithm_named(Collective::all_gather_v, "ring");
  Example example = example_of(ring, problem, Dtype::f32, Op::none).value();
  const Schedule schedule = schedule_of(ring, {Collective::all_gather, 3, 0});
  ASSERT_EQ(run_example(example, schedule).value().wrong, 0);
  Pair wrong{.input = {}, .output = {1, 2, 9, 3, 4, 5}};  // 1 2, nothing, a gap, 3 4 5
  EXPECT_EQ(what_is_wrong(example, wrong.output, 1), "a gap in the output of rank 1 was written");
  wrong.output[2] = std::nullopt;
  EXPECT_EQ(what_is_wrong(example, wrong.output, 1), "");
}

TEST(Barrier, LetsNobodyLeaveBeforeTheLastHasEntered) {
  const Problem problem{Collective::barrier, 4, 0};
  const auto run =
      run_barrier(schedule_of(*algorithms_of(Collective::barrier).front(), problem), std::chrono::milliseconds(5));
  ASSERT_TRUE(run.is_ok()) << run.status().message();
  EXPECT_GE(std::ranges::min(run.value().leaves_ns), std::ranges::max(run.value().enters_ns));
}

}  // namespace
}  // namespace tutti::harness::explain
