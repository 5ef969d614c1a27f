// SPDX-License-Identifier: Apache-2.0
// The numbers of torch.distributed's own tutorial and documentation, on every algorithm of each collective.
#include <vector>

#include <gmock/gmock.h>

#include "suites/conformance/literal.h"

namespace tutti {
namespace {

using testing::Each;
using testing::ElementsAre;
using Floats = std::vector<float>;

class Torch : public Literal {
 protected:
  /// Runs `call` on every algorithm; `input` and `output` are made anew for each.
  struct Buffers {
    Floats input, output;
  };
  void expect(const Problem& problem, const Call& call, const std::function<Buffers(int rank)>& buffers_of,
              const std::function<void(int rank, const Floats& output)>& check) {
    on_every_algorithm(problem, [&](Communicator& communicator, const Schedule& schedule) {
      Buffers buffers = buffers_of(communicator.rank());
      const Floats before = buffers.input;
      Call mine = call;
      mine.collective = problem.collective;
      mine.root = problem.root;
      mine.input = buffers.input.data();
      mine.output = buffers.output.data();
      mine.schedule = &schedule;
      const Status status = communicator.run(mine);
      ASSERT_TRUE(status.is_ok()) << status.message();
      check(communicator.rank(), buffers.output);
      EXPECT_EQ(buffers.input, before) << "the input was written";
    });
  }
};

TEST_P(Torch, ReduceOfOnesOnFourRanksGivesFourAtTheRootAndLeavesTheOthersAlone) {
  expect(
      {.collective = Collective::reduce, .ranks = 4}, {.op = Op::sum, .count = 1},
      [](int) { return Buffers{.input = {1}, .output = {-7}}; },
      [](int rank, const Floats& output) { EXPECT_THAT(output, ElementsAre(rank == 0 ? 4 : -7)); });
}

TEST_P(Torch, AllReduceOfOnesGivesTheNumberOfRanksEverywhere) {
  expect(
      {.collective = Collective::all_reduce, .ranks = 4}, {.op = Op::sum, .count = 1},
      [](int) { return Buffers{.input = {1}, .output = {-7}}; },
      [](int, const Floats& output) { EXPECT_THAT(output, ElementsAre(4)); });
}

TEST_P(Torch, ScatterOfOneToFourGivesEachRankItsNumber) {
  expect(
      {.collective = Collective::scatter, .ranks = 4}, {.count = 1},
      [](int rank) {
        return Buffers{.input = rank == 0 ? Floats{1, 2, 3, 4} : Floats{}, .output = {-7}};
      },
      [](int rank, const Floats& output) { EXPECT_THAT(output, ElementsAre(static_cast<float>(rank + 1))); });
}

TEST_P(Torch, GatherOfOnesGivesTheRootAOneOfEachRank) {
  expect(
      {.collective = Collective::gather, .ranks = 4}, {.count = 1},
      [](int rank) {
        return Buffers{.input = {static_cast<float>(rank + 1)}, .output = Floats(rank == 0 ? 4 : 1, -7)};
      },
      [](int rank, const Floats& output) {
        if (rank == 0) {
          EXPECT_THAT(output, ElementsAre(1, 2, 3, 4));
        } else {
          EXPECT_THAT(output, Each(-7));
        }
      });
}

// all_gather's documentation: rank r gives [1 + 2r, 2 + 2r].
TEST_P(Torch, AllGatherGivesEveryRankTheTensorsOfAll) {
  expect(
      {.collective = Collective::all_gather, .ranks = 2}, {.count = 2},
      [](int rank) {
        const auto two_r = static_cast<float>(2 * rank);
        return Buffers{.input = {1 + two_r, 2 + two_r}, .output = Floats(4, -7)};
      },
      [](int, const Floats& output) { EXPECT_THAT(output, ElementsAre(1, 2, 3, 4)); });
}

TEST_P(Torch, BroadcastGivesEveryRankTheRootsTensor) {
  expect(
      {.collective = Collective::broadcast, .ranks = 4}, {.count = 1},
      [](int rank) { return Buffers{.input = rank == 0 ? Floats{1} : Floats{}, .output = {0}}; },
      [](int, const Floats& output) { EXPECT_THAT(output, ElementsAre(1)); });
}

// Block j of rank r is (r + 1) * [1, 2], to the power j + 1.
TEST_P(Torch, ReduceScatterOfPowersGivesEachRankItsSum) {
  expect(
      {.collective = Collective::reduce_scatter, .ranks = 3}, {.op = Op::sum, .count = 2},
      [](int rank) {
        const float one = static_cast<float>(rank + 1), two = 2 * one;
        return Buffers{.input = {one, two, one * one, two * two, one * one * one, two * two * two}, .output = {-7, -7}};
      },
      [](int rank, const Floats& output) {
        const Floats sums[] = {{6, 12}, {14, 56}, {36, 288}};
        EXPECT_EQ(output, sums[rank]);
      });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Torch, testing::Values(Kind::threads, Kind::processes, Kind::blocks), kind_name);

}  // namespace
}  // namespace tutti
