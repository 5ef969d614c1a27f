// SPDX-License-Identifier: Apache-2.0
// Where buffers lie, in literals. In place, the smaller buffer is a block of the larger and the rest of the larger
// stays as it is. What is not looked at may be null. The public calls see the placement by the addresses.
#include <vector>

#include <gmock/gmock.h>

#include "suites/conformance/literal.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using Floats = std::vector<float>;

class Placement : public Literal {
 protected:
  static void run(Communicator& communicator, const Schedule& schedule, Call call) {
    call.collective = schedule.problem.collective;
    call.root = schedule.problem.root;
    call.schedule = &schedule;
    call.is_in_place = true;
    const Status status = communicator.run(call);
    EXPECT_TRUE(status.is_ok()) << status.message();
  }
};

TEST_P(Placement, AllGatherInPlaceHasTheInputInTheRanksBlockOfTheOutput) {
  on_every_algorithm({.collective = Collective::all_gather, .ranks = 3},
                     [](Communicator& communicator, const Schedule& schedule) {
                       const auto rank = static_cast<std::size_t>(communicator.rank());
                       Floats buffer(6, -7);
                       buffer[2 * rank] = static_cast<float>(10 * rank);
                       buffer[2 * rank + 1] = static_cast<float>(10 * rank + 1);
                       run(communicator, schedule, {.count = 2, .input = &buffer[2 * rank], .output = buffer.data()});
                       EXPECT_THAT(buffer, ElementsAre(0, 1, 10, 11, 20, 21));
                     });
}

TEST_P(Placement, ReduceScatterInPlaceHasTheOutputInTheRanksBlockOfTheInputAndKeepsTheRest) {
  on_every_algorithm(
      {.collective = Collective::reduce_scatter, .ranks = 3}, [](Communicator& communicator, const Schedule& schedule) {
        const auto rank = static_cast<std::size_t>(communicator.rank());
        Floats buffer{1, 2, 3}, expected = buffer;
        expected[rank] *= 3;
        run(communicator, schedule, {.op = Op::sum, .count = 1, .input = buffer.data(), .output = &buffer[rank]});
        EXPECT_EQ(buffer, expected);
      });
}

TEST_P(Placement, OfGatherAndScatterIsTheRootsAndTheOthersBuffersAreNull) {
  for (const int root : {0, 2}) {
    on_every_algorithm({.collective = Collective::gather, .ranks = 3, .root = root},
                       [root](Communicator& communicator, const Schedule& schedule) {
                         const bool is_root = communicator.rank() == root;
                         float mine = static_cast<float>(communicator.rank());
                         Floats all{-7, -7, -7};
                         float& block = all[static_cast<std::size_t>(root)];
                         block = static_cast<float>(root);
                         run(communicator, schedule,
                             {.count = 1, .input = is_root ? &block : &mine, .output = is_root ? all.data() : nullptr});
                         if (is_root) {
                           EXPECT_THAT(all, ElementsAre(0, 1, 2));
                         }
                         EXPECT_EQ(mine, static_cast<float>(communicator.rank()));
                       });
    on_every_algorithm({.collective = Collective::scatter, .ranks = 3, .root = root},
                       [root](Communicator& communicator, const Schedule& schedule) {
                         const bool is_root = communicator.rank() == root;
                         float mine = -7;
                         Floats all{4, 5, 6};
                         float& block = all[static_cast<std::size_t>(root)];
                         run(communicator, schedule,
                             {.count = 1, .input = is_root ? all.data() : nullptr, .output = is_root ? &block : &mine});
                         EXPECT_THAT(all, ElementsAre(4, 5, 6));
                         if (!is_root) {
                           EXPECT_EQ(mine, static_cast<float>(4 + communicator.rank()));
                         }
                       });
  }
}

TEST_P(Placement, OfReduceIsTheRootsAndTheOthersOutputIsNull) {
  for (const int root : {0, 2}) {
    on_every_algorithm({.collective = Collective::reduce, .ranks = 3, .root = root}, [root](Communicator& communicator,
                                                                                            const Schedule& schedule) {
      const bool is_root = communicator.rank() == root;
      float mine = static_cast<float>(communicator.rank() + 1);
      run(communicator, schedule, {.op = Op::sum, .count = 1, .input = &mine, .output = is_root ? &mine : nullptr});
      EXPECT_EQ(mine, is_root ? 6 : static_cast<float>(communicator.rank() + 1));
    });
  }
}

// The others cannot know whether the root is in place, and need not.
TEST_P(Placement, IsSeenByTheAddressesAndMayDifferWhereOnlyTheRootHasOne) {
  on_ranks(GetParam(), 3, [](Communicator& communicator) {
    const int rank = communicator.rank();
    const auto block = static_cast<std::size_t>(rank);
    const bool is_root = rank == 1;
    Floats all{1, 2, 3};
    float one = 1;
    const auto is_ok = [](const Status& status) { EXPECT_TRUE(status.is_ok()) << status.message(); };

    is_ok(communicator.reduce(&one, is_root ? &one : nullptr, 1, Dtype::f32, Op::sum, 1));
    EXPECT_EQ(one, is_root ? 3 : 1);
    is_ok(communicator.gather(is_root ? &all[1] : &one, is_root ? all.data() : nullptr, 1, Dtype::f32, 1));
    EXPECT_EQ(all, is_root ? (Floats{1, 2, 1}) : (Floats{1, 2, 3}));
    all = {1, 2, 3};
    is_ok(communicator.scatter(is_root ? all.data() : nullptr, is_root ? &all[1] : &one, 1, Dtype::f32, 1));
    EXPECT_EQ(one, static_cast<float>(is_root ? 3 : rank + 1));
    is_ok(communicator.all_gather(&all[block], all.data(), 1, Dtype::f32));
    EXPECT_THAT(all, ElementsAre(1, 2, 3));
    is_ok(communicator.reduce_scatter(all.data(), &all[block], 1, Dtype::f32, Op::sum));
    EXPECT_EQ(all[block], static_cast<float>(3 * (rank + 1)));
    Floats sum{0, 0, 0};
    is_ok(communicator.all_gather(&all[block], sum.data(), 1, Dtype::f32));
    EXPECT_THAT(sum, ElementsAre(3, 6, 9));
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Placement, testing::Values(Kind::threads, Kind::processes, Kind::blocks), kind_name);

}  // namespace
}  // namespace tutti
