// SPDX-License-Identifier: Apache-2.0
// What the v forms and the calls on lists of blocks mean, said in literals: blocks of different lengths, empty ones,
// gaps and any order, on every algorithm that takes counts.
#include <atomic>
#include <memory>
#include <vector>

#include <gmock/gmock.h>

#include "suites/conformance/literal.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using Floats = std::vector<float>;
using Numbers = std::vector<Count>;

void expect_ok(const Status& status) { EXPECT_TRUE(status.is_ok()) << status.message(); }

/// A v call, its blocks and its schedule.
struct VCall {
  Call call;
  BlockTable blocks;
};

void run(Communicator& communicator, const Schedule& schedule, VCall v) {
  v.call.dtype = Dtype::f32;
  v.call.schedule = &schedule;
  v.call.root = schedule.problem.root;
  v.call.blocks = &v.blocks;
  expect_ok(communicator.run(v.call));
}

class VForms : public Literal {
 protected:
  /// Every algorithm that takes counts.
  void on_each(Problem problem, const std::function<void(Communicator&, const Schedule&)>& body) {
    std::vector<std::string> names;
    for (const Algorithm* algorithm : algorithms_of(problem.collective)) names.emplace_back(algorithm->name);
    ASSERT_FALSE(names.empty());
    problem.collective = base_of(problem.collective);
    on_algorithms(problem, names, body);
  }
  static BlockTable shared_blocks(Collective form, Communicator& communicator, int root, const Division& division) {
    const Problem problem{.collective = form, .ranks = communicator.ranks(), .root = root};
    const auto table = blocks_of(problem, communicator.rank(), division, sizeof(float));
    EXPECT_TRUE(table.is_ok()) << table.status().message();
    return table.value();
  }
};

// Rank r has r + 1 numbers for rank 0, none for rank 1, and 2 for rank 2, as torch's input_split_sizes say it.
TEST_P(VForms, AllToAllWithUnevenSplits) {
  on_each({.collective = Collective::all_to_all_v, .ranks = 3},
          [](Communicator& communicator, const Schedule& schedule) {
            const int r = communicator.rank();
            Floats input;
            for (int i = 0; i < r + 3; ++i) input.push_back(static_cast<float>(10 * r + i));
            const Floats before = input;
            const Numbers send{r + 1, 0, 2};
            const Numbers receive = r == 0 ? Numbers{1, 2, 3} : r == 1 ? Numbers{0, 0, 0} : Numbers{2, 2, 2};
            const Problem problem{.collective = Collective::all_to_all_v, .ranks = 3};
            Floats output(6, -7);
            run(communicator, schedule,
                {.call = {.collective = Collective::all_to_all_v, .input = input.data(), .output = output.data()},
                 .blocks = blocks_of(problem, {.counts = send}, {.counts = receive}, sizeof(float)).value()});
            if (r == 0) {
              EXPECT_THAT(output, ElementsAre(0, 10, 11, 20, 21, 22));
            }
            if (r == 1) {
              EXPECT_THAT(output, Each(-7));
            }
            if (r == 2) {
              EXPECT_THAT(output, ElementsAre(1, 2, 12, 13, 23, 24));
            }
            EXPECT_EQ(input, before);
          });
}

TEST_P(VForms, AllToAllInPlaceSendsAndReceivesTheSameBlocks) {
  on_each({.collective = Collective::all_to_all_v, .ranks = 3},
          [](Communicator& communicator, const Schedule& schedule) {
            const int r = communicator.rank();
            const Numbers counts = r == 0 ? Numbers{1, 2, 0} : r == 1 ? Numbers{2, 0, 1} : Numbers{0, 1, 1};
            Floats buffer = r == 0 ? Floats{0, 1, 2} : r == 1 ? Floats{10, 11, 12} : Floats{20, 21};
            const Problem problem{.collective = Collective::all_to_all_v, .ranks = 3};
            run(communicator, schedule,
                {.call = {.collective = Collective::all_to_all_v,
                          .input = buffer.data(),
                          .output = buffer.data(),
                          .is_in_place = true},
                 .blocks = blocks_of(problem, {.counts = counts}, {.counts = counts}, sizeof(float)).value()});
            if (r == 0) {
              EXPECT_THAT(buffer, ElementsAre(0, 10, 11));
            }
            if (r == 1) {
              EXPECT_THAT(buffer, ElementsAre(1, 2, 20));
            }
            if (r == 2) {
              EXPECT_THAT(buffer, ElementsAre(12, 21));
            }
          });
}

// Blocks from the last to the first, the second empty, a gap before each.
TEST_P(VForms, GatherPutsBlocksWhereTheRootSays) {
  for (const int root : {0, 2}) {
    on_each({.collective = Collective::gather_v, .ranks = 3, .root = root},
            [root](Communicator& communicator, const Schedule& schedule) {
              const int r = communicator.rank();
              const bool is_root = r == root;
              const Numbers counts{2, 0, 3}, displacements{6, 4, 1};
              Floats input;
              for (Count i = 0; i < counts[static_cast<std::size_t>(r)]; ++i) {
                input.push_back(static_cast<float>(10 * r + static_cast<int>(i)));
              }
              Floats output(is_root ? 9 : 1, -7);
              const Division division{.counts = counts, .displacements = displacements};
              run(communicator, schedule,
                  {.call = {.collective = Collective::gather_v, .input = input.data(), .output = output.data()},
                   .blocks = shared_blocks(Collective::gather_v, communicator, root, division)});
              if (is_root) {
                EXPECT_THAT(output, ElementsAre(-7, 20, 21, 22, -7, -7, 0, 1, -7));
              } else {
                EXPECT_THAT(output, Each(-7));
              }
            });
  }
}

TEST_P(VForms, ScatterTakesBlocksFromWhereTheRootSays) {
  for (const int root : {0, 1}) {
    on_each({.collective = Collective::scatter_v, .ranks = 3, .root = root},
            [root](Communicator& communicator, const Schedule& schedule) {
              const int r = communicator.rank();
              const Numbers counts{1, 3, 0}, displacements{5, 1, 0};
              const Floats input = r == root ? Floats{-7, 1, 2, 3, -7, 9} : Floats{};
              Floats output(3, -7);
              const Division division{.counts = counts, .displacements = displacements};
              run(communicator, schedule,
                  {.call = {.collective = Collective::scatter_v, .input = input.data(), .output = output.data()},
                   .blocks = shared_blocks(Collective::scatter_v, communicator, root, division)});
              if (r == 0) {
                EXPECT_THAT(output, ElementsAre(9, -7, -7));
              }
              if (r == 1) {
                EXPECT_THAT(output, ElementsAre(1, 2, 3));
              }
              if (r == 2) {
                EXPECT_THAT(output, Each(-7));
              }
            });
  }
}

// The counts are everybody's, the displacements each rank's own.
TEST_P(VForms, AllGatherPutsBlocksWhereEachRankSays) {
  on_each({.collective = Collective::all_gather_v, .ranks = 3},
          [](Communicator& communicator, const Schedule& schedule) {
            const int r = communicator.rank();
            const Numbers counts{2, 1, 0}, forwards{0, 3, 4}, backwards{3, 1, 0};
            const Floats input = r == 0 ? Floats{1, 2} : r == 1 ? Floats{3} : Floats{};
            Floats output(5, -7);
            const Division division{.counts = counts, .displacements = r == 1 ? backwards : forwards};
            run(communicator, schedule,
                {.call = {.collective = Collective::all_gather_v, .input = input.data(), .output = output.data()},
                 .blocks = shared_blocks(Collective::all_gather_v, communicator, 0, division)});
            if (r == 1) {
              EXPECT_THAT(output, ElementsAre(-7, 3, -7, 1, 2));
            } else {
              EXPECT_THAT(output, ElementsAre(1, 2, -7, 3, -7));
            }
          });
}

TEST_P(VForms, ReduceScatterReducesEachBlockForItsRank) {
  on_each({.collective = Collective::reduce_scatter_v, .ranks = 3},
          [](Communicator& communicator, const Schedule& schedule) {
            const int r = communicator.rank();
            const Numbers counts{1, 0, 2}, displacements{3, 0, 0};
            const auto one = static_cast<float>(r + 1);
            const Floats input{one, 10 * one, -7, 100 * one};
            Floats output(2, -7);
            const Division division{.counts = counts, .displacements = displacements};
            run(communicator, schedule,
                {.call = {.collective = Collective::reduce_scatter_v,
                          .op = Op::sum,
                          .input = input.data(),
                          .output = output.data()},
                 .blocks = shared_blocks(Collective::reduce_scatter_v, communicator, 0, division)});
            if (r == 0) {
              EXPECT_THAT(output, ElementsAre(600, -7));
            }
            if (r == 1) {
              EXPECT_THAT(output, Each(-7));
            }
            if (r == 2) {
              EXPECT_THAT(output, ElementsAre(6, 60));
            }
          });
}

// A rank with an empty block has nothing to be in place, and others may be.
TEST_P(VForms, InPlaceIsTheBlockOfTheRankAndEachRanksOwnAffair) {
  on_ranks(GetParam(), 3, [](Communicator& communicator) {
    const auto r = static_cast<std::size_t>(communicator.rank());
    const Numbers counts{2, 0, 1}, displacements{0, 2, 3};
    const Division division{.counts = counts, .displacements = displacements};
    Floats buffer(4, -7);
    if (r == 0) buffer = {1, 2, -7, -7};
    const float mine = 5;
    const void* const input = r == 0 ? buffer.data() : r == 1 ? nullptr : &mine;
    expect_ok(communicator.all_gather_v(input, buffer.data(), division, Dtype::f32));
    EXPECT_THAT(buffer, ElementsAre(1, 2, -7, 5));

    Floats sums{1, 2, -7, 3};
    float sum = 0;
    expect_ok(communicator.reduce_scatter_v(sums.data(), r == 2 ? &sum : sums.data(), division, Dtype::f32, Op::sum));
    EXPECT_EQ(sums, r == 0 ? (Floats{3, 6, -7, 3}) : (Floats{1, 2, -7, 3}));
    EXPECT_EQ(sum, r == 2 ? 9 : 0);
  });
}

// torch: all_gather, gather, scatter, reduce_scatter and all_to_all of lists of tensors of different sizes.
TEST_P(VForms, ListsOfBlocksMayLieAnywhere) {
  on_ranks(GetParam(), 3, [](Communicator& communicator) {
    const int r = communicator.rank();
    Floats last(1, -7), first(2, -7), none;
    const std::vector<Part> list{{first.data(), 2}, {none.data(), 0}, {last.data(), 1}};
    const std::vector<ConstPart> sources{{first.data(), 2}, {nullptr, 0}, {last.data(), 1}};
    const auto reset = [&](float value) { first = {value, 10 * value}, last = {100 * value}; };
    const Floats mine = r == 0 ? Floats{1, 2} : r == 1 ? Floats{} : Floats{3};

    expect_ok(communicator.all_gather(mine.data(), list, Dtype::f32));
    EXPECT_THAT(first, ElementsAre(1, 2));
    EXPECT_THAT(last, ElementsAre(3));
    reset(-7);
    const std::vector<Part> counts_only{{nullptr, 2}, {nullptr, 0}, {nullptr, 1}};
    expect_ok(communicator.gather(mine.data(), r == 1 ? list : counts_only, Dtype::f32, 1));
    EXPECT_EQ(first, r == 1 ? (Floats{1, 2}) : (Floats{-7, -70}));
    reset(static_cast<float>(r + 1));
    Floats output(2, -7);
    expect_ok(communicator.scatter(sources, output.data(), Dtype::f32, 2));
    EXPECT_EQ(output, r == 0 ? (Floats{3, 30}) : r == 1 ? (Floats{-7, -7}) : (Floats{300, -7}));
    expect_ok(communicator.reduce_scatter(sources, output.data(), Dtype::f32, Op::sum));
    EXPECT_EQ(output, r == 0 ? (Floats{6, 60}) : r == 1 ? (Floats{-7, -7}) : (Floats{600, -7}));
  });
}

TEST_P(VForms, ListsOfAllToAllAreEachRanksOwn) {
  on_ranks(GetParam(), 2, [](Communicator& communicator) {
    const int r = communicator.rank();
    const auto owned = std::make_unique<float>(static_cast<float>(r));
    const Floats three{1, 2, 3};
    Floats kept(3, -7), got(3, -7);
    // Rank 0 keeps one number and sends three; rank 1 sends one and keeps three.
    const std::vector<ConstPart> input = r == 0 ? std::vector<ConstPart>{{owned.get(), 1}, {three.data(), 3}}
                                                : std::vector<ConstPart>{{owned.get(), 1}, {three.data(), 3}};
    const std::vector<Part> output = r == 0 ? std::vector<Part>{{kept.data(), 1}, {got.data(), 1}}
                                            : std::vector<Part>{{kept.data(), 3}, {got.data(), 3}};
    expect_ok(communicator.all_to_all(input, output, Dtype::f32));
    EXPECT_EQ(kept, r == 0 ? (Floats{0, -7, -7}) : (Floats{1, 2, 3}));
    EXPECT_EQ(got, r == 0 ? (Floats{1, -7, -7}) : (Floats{1, 2, 3}));
  });
}

// Counts change from call to call, as they do where tokens choose their experts; more of them than plans are kept.
TEST_P(VForms, CountsMayBeOthersInEveryCall) {
  on_ranks(GetParam(), 2, [](Communicator& communicator) {
    const int r = communicator.rank(), other = 1 - r;
    for (int round = 0; round < 600; ++round) {
      const Count mine = round % 7, both = round;
      const Numbers send{r == 0 ? mine : both, r == 0 ? both : mine};
      Floats input(static_cast<std::size_t>(mine + both)), output(input.size(), -7);
      for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(1000 * r + static_cast<int>(i));
      expect_ok(communicator.all_to_all_v(input.data(), {.counts = send}, output.data(), {.counts = send}, Dtype::f32));
      if (both == 0) continue;
      const auto first = static_cast<std::size_t>(r == 0 ? mine : 0);
      const auto there = static_cast<float>(1000 * other + (r == 0 ? 0 : static_cast<int>(mine)));
      ASSERT_EQ(output[first], there) << "round " << round;
      ASSERT_EQ(output[first + static_cast<std::size_t>(both) - 1], there + static_cast<float>(both - 1));
    }
  });
}

// The receiver finds a message of another length, in its first slice, also where both have several.
TEST_P(VForms, DifferentCountsOfAPairAreAMismatchNamingBothLengths) {
  const Common<int> told;
  on_ranks(GetParam(), 2, [&](Communicator& communicator) {
    const bool is_sender = communicator.rank() == 0;
    const Floats input(100000);
    Floats output(100000);
    const Numbers send = is_sender ? Numbers{0, 90000} : Numbers{0, 0};
    const Numbers receive = is_sender ? Numbers{0, 0} : Numbers{80000, 0};
    const Status status =
        communicator.all_to_all_v(input.data(), {.counts = send}, output.data(), {.counts = receive}, Dtype::f32);
    if (is_sender) {  // of thread blocks everybody is told the same
      EXPECT_THAT(static_cast<int>(status.code()),
                  testing::AnyOf(static_cast<int>(Code::ok), static_cast<int>(Code::aborted),
                                 static_cast<int>(GetParam() == Kind::blocks ? Code::mismatch : Code::aborted)));
      return;
    }
    EXPECT_EQ(status.code(), Code::mismatch);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("rank 0 sends 360000 bytes"), HasSubstr("rank 1 expects 320000")));
    *told = 1;
  });
  EXPECT_EQ(*told, 1);
}

TEST_P(VForms, ALengthThatDiffersInAGroupNamesTheRanksOfTheWorldToo) {
  const Common<int> told;
  on_ranks(GetParam(), 2, [&](Communicator& world) {
    const auto group = world.split(0, -world.rank()).value();
    const bool is_sender = group->rank() == 0;
    const Floats input(4);
    Floats output(4);
    const Numbers send = is_sender ? Numbers{0, 2} : Numbers{0, 0};
    const Numbers receive = is_sender ? Numbers{0, 0} : Numbers{1, 0};
    const Status status =
        group->all_to_all_v(input.data(), {.counts = send}, output.data(), {.counts = receive}, Dtype::f32);
    if (is_sender) return;
    EXPECT_EQ(status.code(), Code::mismatch);
    EXPECT_THAT(status.message(), HasSubstr("on a count: rank 0 of the group (rank 1 of the world) sends 8 bytes, rank "
                                            "1 of the group (rank 0 of the world) expects 4"));
    *told = 1;
  });
  EXPECT_EQ(*told, 1);
}

TEST_P(VForms, CountsThatAllRanksShareAreCompared) {
  const Common<int> told;
  on_ranks(GetParam(), 2, [&](Communicator& communicator) {
    const Numbers counts = communicator.rank() == 0 ? Numbers{2, 3} : Numbers{2, 4};
    const Floats input(4);
    Floats output(6);
    const Status status = communicator.all_gather_v(input.data(), output.data(), {.counts = counts}, Dtype::f32);
    EXPECT_FALSE(status.is_ok());
    if (status.code() == Code::mismatch) std::atomic_ref(*told).store(1);  // both may
  });
  EXPECT_EQ(*told, 1);
}

TEST_P(VForms, AllBlocksMayBeEmptyAndTheBuffersNull) {
  on_ranks(GetParam(), 3, [](Communicator& communicator) {
    const Numbers none{0, 0, 0};
    const Division division{.counts = none};
    expect_ok(communicator.gather_v(nullptr, nullptr, division, Dtype::f32, 1));
    expect_ok(communicator.all_gather_v(nullptr, nullptr, division, Dtype::f32));
    expect_ok(communicator.scatter_v(nullptr, nullptr, division, Dtype::f32, 1));
    expect_ok(communicator.reduce_scatter_v(nullptr, nullptr, division, Dtype::f32, Op::sum));
    expect_ok(communicator.all_to_all_v(nullptr, division, nullptr, division, Dtype::f32));
  });
}

// Refused before anything is sent: the calls after it are as if it had not been made.
TEST_P(VForms, WhatIsNoDivisionIsRefused) {
  on_ranks(GetParam(), 3, [](Communicator& communicator) {
    Floats in(9), out(9);
    const auto refusal = [&](const Numbers& counts, const Numbers& displacements) {
      const Status status = communicator.all_gather_v(in.data(), out.data(),
                                                      {.counts = counts, .displacements = displacements}, Dtype::f32);
      EXPECT_EQ(status.code(), Code::invalid_argument);
      return std::string(status.message());
    };
    EXPECT_THAT(refusal({1, 2}, {}), HasSubstr("2 counts of the output on 3 ranks"));
    EXPECT_THAT(refusal({1, 2, 3}, {0, 1}), HasSubstr("2 displacements of the output on 3 ranks"));
    EXPECT_THAT(refusal({1, -2, 3}, {}), HasSubstr("count -2 of block 1 of the output is negative"));
    EXPECT_THAT(refusal({1, 2, 3}, {0, -1, 4}), HasSubstr("displacement -1 of block 1 of the output is negative"));
    EXPECT_THAT(refusal({3, 0, 3}, {2, 0, 0}),
                HasSubstr("blocks 2 and 0 of the output overlap: bytes [0, 12) and [8, 20)"));
    EXPECT_THAT(refusal({Count{1} << 60, Count{1} << 60, 1}, {}),
                HasSubstr("count 1152921504606846976 of block 1 of the output"));
    EXPECT_THAT(refusal({1, 1, 1}, {0, 1, Count{1} << 61}), HasSubstr("displacement 2305843009213693952 of block 2"));
    const Numbers fine{1, 1, 1};
    EXPECT_THAT(communicator.all_gather_v(nullptr, out.data(), {.counts = fine}, Dtype::f32).message(),
                HasSubstr("the input is a null pointer"));
    const std::vector<Part> list{{out.data(), 1}, {nullptr, 1}, {nullptr, 0}};
    EXPECT_THAT(communicator.all_gather(in.data(), list, Dtype::f32).message(),
                HasSubstr("block 1 of the output is a null pointer, and has 1 elements"));
    expect_ok(communicator.all_gather_v(in.data(), out.data(), {.counts = fine}, Dtype::f32));
  });
}

TEST_P(VForms, InPlaceAllToAllOfOtherBlocksIsRefused) {
  on_ranks(GetParam(), 2, [](Communicator& communicator) {
    Floats buffer(4);
    const Numbers send{1, 2}, receive{2, 1};
    const Status status =
        communicator.all_to_all_v(buffer.data(), {.counts = send}, buffer.data(), {.counts = receive}, Dtype::f32);
    EXPECT_EQ(status.code(), Code::invalid_argument);
    EXPECT_THAT(status.message(), HasSubstr("all_to_all_v in place sends 4 bytes from 0 on to rank 0 and receives 8"));
  });
}

TEST_P(VForms, OnSharedBuffersEveryBlockIsShared) {
  on_ranks(GetParam(), 2, [](Communicator& communicator) {
    const auto memory = communicator.alloc_shared(6 * sizeof(float));
    ASSERT_TRUE(memory.is_ok());
    auto* const values = static_cast<float*>(memory.value());
    const auto r = static_cast<std::size_t>(communicator.rank());
    const Numbers counts{2, 1}, displacements{3, 1};
    for (std::size_t i = 0; i < 6; ++i) values[i] = -7;
    const Floats own = r == 0 ? Floats{1, 2} : Floats{3};
    std::copy(own.begin(), own.end(), values + displacements[r]);
    expect_ok(communicator.all_gather_v(values + displacements[r], values,
                                        {.counts = counts, .displacements = displacements}, Dtype::f32,
                                        Buffers::shared));
    EXPECT_THAT(std::vector<float>(values, values + 6), ElementsAre(-7, 3, -7, 1, 2, -7));
    communicator.free_shared(memory.value());
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, VForms, testing::Values(Kind::threads, Kind::processes, Kind::blocks), kind_name);

}  // namespace
}  // namespace tutti
