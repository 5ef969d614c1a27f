// SPDX-License-Identifier: Apache-2.0
// What the collectives mean and what happens at their edges, in literals. Every edge of impl/collective/README.md
// points at one of the tests here.
#include <array>
#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/conformance/literal.h"

namespace tutti {
namespace {

using testing::ElementsAre;

constexpr std::int32_t kUntouched = -77;

class Meaning : public Literal {};
INSTANTIATE_TEST_SUITE_P(Ranks, Meaning, testing::Values(Kind::threads, Kind::processes, Kind::blocks), kind_name);

// ---- broadcast

TEST_P(Meaning, BroadcastGivesTheRootsInputToEveryRank) {
  for (int root = 0; root < 4; ++root) {
    on_every_algorithm({.collective = Collective::broadcast, .ranks = 4, .root = root},
                       [&](Communicator& communicator, const Schedule& schedule) {
                         const bool is_root = communicator.rank() == root;
                         const std::array<std::int32_t, 3> in{10 + root, 20, -30};
                         std::array<std::int32_t, 3> out{kUntouched, kUntouched, kUntouched};
                         const Status status = communicator.run({.collective = Collective::broadcast,
                                                                 .dtype = Dtype::i32,
                                                                 .root = root,
                                                                 .count = 3,
                                                                 .input = is_root ? in.data() : nullptr,
                                                                 .output = out.data(),
                                                                 .schedule = &schedule});
                         ASSERT_TRUE(status.is_ok()) << status.message();
                         EXPECT_THAT(out, ElementsAre(10 + root, 20, -30));
                       });
  }
}

TEST_P(Meaning, BroadcastInPlaceIsOneBufferOnEveryRank) {
  on_every_algorithm({.collective = Collective::broadcast, .ranks = 4, .root = 2},
                     [](Communicator& communicator, const Schedule& schedule) {
                       std::array<float, 2> both{-1, -1};
                       if (communicator.rank() == 2) both = {1.5F, 2.5F};
                       const Status status = communicator.run({.collective = Collective::broadcast,
                                                               .root = 2,
                                                               .count = 2,
                                                               .input = both.data(),
                                                               .output = both.data(),
                                                               .is_in_place = true,
                                                               .schedule = &schedule});
                       ASSERT_TRUE(status.is_ok()) << status.message();
                       EXPECT_THAT(both, ElementsAre(1.5F, 2.5F));
                     });
}

// ---- sendrecv and pingpong

TEST_P(Meaning, SendrecvGivesTheNextRankMyBlock) {
  for (const int ranks : {1, 2, 4}) {
    on_every_algorithm({.collective = Collective::sendrecv, .ranks = ranks},
                       [&](Communicator& communicator, const Schedule& schedule) {
                         const int r = communicator.rank();
                         const int previous = (r + ranks - 1) % ranks;
                         const std::array<std::int32_t, 2> mine{10 * r, 10 * r + 1};
                         std::array<std::int32_t, 2> in = mine, out{kUntouched, kUntouched};
                         Call call{.collective = Collective::sendrecv,
                                   .dtype = Dtype::i32,
                                   .count = 2,
                                   .input = in.data(),
                                   .output = out.data(),
                                   .schedule = &schedule};
                         ASSERT_TRUE(communicator.run(call).is_ok());
                         EXPECT_THAT(out, ElementsAre(10 * previous, 10 * previous + 1));
                         EXPECT_EQ(in, mine) << "the input was written";
                         call.input = call.output = in.data();
                         call.is_in_place = true;
                         ASSERT_TRUE(communicator.run(call).is_ok());
                         EXPECT_EQ(in, out) << "in place differs from out of place";
                       });
  }
}

TEST_P(Meaning, PingpongBringsTheEvenRanksInputToTheOddOneAndBack) {
  on_every_algorithm({.collective = Collective::pingpong, .ranks = 5},
                     [](Communicator& communicator, const Schedule& schedule) {
                       const int r = communicator.rank();
                       const bool begins = r % 2 == 0;  // rank 4 has nobody to play with
                       std::array<float, 2> in{10.0F + static_cast<float>(r), 0.5F}, out{-1, -1};
                       Call call{.collective = Collective::pingpong,
                                 .count = 2,
                                 .input = begins ? in.data() : nullptr,
                                 .output = out.data(),
                                 .schedule = &schedule};
                       ASSERT_TRUE(communicator.run(call).is_ok());
                       EXPECT_THAT(out, ElementsAre(10.0F + static_cast<float>(r / 2 * 2), 0.5F));
                       out = begins ? in : std::array<float, 2>{-1, -1};
                       call.input = call.output = out.data();
                       call.is_in_place = true;
                       ASSERT_TRUE(communicator.run(call).is_ok());
                       EXPECT_THAT(out, ElementsAre(10.0F + static_cast<float>(r / 2 * 2), 0.5F));
                     });
}

TEST_P(Meaning, PingpongOfOnePairLeavesTheOthersAlone) {
  on_every_algorithm({.collective = Collective::pingpong, .ranks = 4, .pairing = {.first = 0, .second = 3}},
                     [](Communicator& communicator, const Schedule& schedule) {
                       const bool plays = communicator.rank() % 3 == 0;
                       const float in = 7.5F;
                       float out = -1;
                       ASSERT_TRUE(communicator
                                       .run({.collective = Collective::pingpong,
                                             .count = 1,
                                             .input = communicator.rank() == 0 ? &in : nullptr,
                                             .output = plays ? &out : nullptr,
                                             .schedule = &schedule})
                                       .is_ok());
                       EXPECT_EQ(out, plays ? 7.5F : -1.0F);
                     });
}

// ---- windows of messages

TEST_P(Meaning, BandwidthGivesTheOddRankEveryMessageOfTheEvenOne) {
  on_every_algorithm({.collective = Collective::bandwidth, .ranks = 5, .pairing = {.window = 3}},
                     [](Communicator& communicator, const Schedule& schedule) {
                       const int r = communicator.rank();
                       const bool sends = r % 2 == 0 && r < 4, receives = r % 2 == 1;
                       std::array<std::int32_t, 6> in{}, out{};
                       for (std::size_t i = 0; i < in.size(); ++i) in[i] = 10 * r + static_cast<std::int32_t>(i);
                       out.fill(kUntouched);
                       ASSERT_TRUE(communicator
                                       .run({.collective = Collective::bandwidth,
                                             .dtype = Dtype::i32,
                                             .count = 2,
                                             .input = sends ? in.data() : nullptr,
                                             .output = receives ? out.data() : nullptr,
                                             .schedule = &schedule})
                                       .is_ok());
                       const int from = 10 * (r - 1);
                       if (receives) {
                         EXPECT_THAT(out, ElementsAre(from, from + 1, from + 2, from + 3, from + 4, from + 5));
                       }
                     });
}

TEST_P(Meaning, BibandwidthExchangesEveryMessageInPlaceToo) {
  on_every_algorithm({.collective = Collective::bibandwidth, .ranks = 2, .pairing = {.window = 6}},
                     [](Communicator& communicator, const Schedule& schedule) {
                       const int mine = 10 * communicator.rank(), other = 10 - mine;
                       std::array<std::int32_t, 6> in{mine, mine + 1, mine + 2, mine + 3, mine + 4, mine + 5}, out{};
                       Call call{.collective = Collective::bibandwidth,
                                 .dtype = Dtype::i32,
                                 .count = 1,
                                 .input = in.data(),
                                 .output = out.data(),
                                 .schedule = &schedule};
                       ASSERT_TRUE(communicator.run(call).is_ok());
                       EXPECT_THAT(out, ElementsAre(other, other + 1, other + 2, other + 3, other + 4, other + 5));
                       call.output = in.data();
                       call.is_in_place = true;
                       ASSERT_TRUE(communicator.run(call).is_ok());
                       EXPECT_EQ(in, out) << "in place differs from out of place";
                     });
}

TEST_P(Meaning, MessageRatePairsTheHalves) {
  on_every_algorithm({.collective = Collective::message_rate, .ranks = 5, .pairing = {.window = 2}},
                     [](Communicator& communicator, const Schedule& schedule) {
                       const int r = communicator.rank();
                       const std::array<std::int32_t, 2> in{10 * r, 10 * r + 1};
                       std::array<std::int32_t, 2> out{kUntouched, kUntouched};
                       ASSERT_TRUE(communicator
                                       .run({.collective = Collective::message_rate,
                                             .dtype = Dtype::i32,
                                             .count = 1,
                                             .input = in.data(),
                                             .output = out.data(),
                                             .schedule = &schedule})
                                       .is_ok());
                       const bool receives = r == 2 || r == 3;
                       if (receives) {
                         EXPECT_THAT(out, ElementsAre(10 * (r - 2), 10 * (r - 2) + 1));
                       } else {
                         EXPECT_THAT(out, ElementsAre(kUntouched, kUntouched));
                       }
                     });
}

// ---- scan and exscan

TEST_P(Meaning, ScanGivesWhatTheRanksUpToOnesOwnComeTo) {
  for (const int ranks : {1, 2, 4, 5}) {
    on_every_algorithm({.collective = Collective::scan, .ranks = ranks},
                       [](Communicator& communicator, const Schedule& schedule) {
                         const int r = communicator.rank();
                         const std::array<std::int32_t, 2> mine{r + 1, -10 * r};
                         std::array<std::int32_t, 2> in = mine, out{kUntouched, kUntouched};
                         Call call{.collective = Collective::scan,
                                   .dtype = Dtype::i32,
                                   .op = Op::sum,
                                   .count = 2,
                                   .input = in.data(),
                                   .output = out.data(),
                                   .schedule = &schedule};
                         ASSERT_TRUE(communicator.run(call).is_ok());
                         EXPECT_THAT(out, ElementsAre((r + 1) * (r + 2) / 2, -5 * r * (r + 1)));
                         EXPECT_EQ(in, mine) << "the input was written";
                         call.input = call.output = in.data();
                         call.is_in_place = true;
                         ASSERT_TRUE(communicator.run(call).is_ok());
                         EXPECT_EQ(in, out) << "in place differs from out of place";
                       });
  }
}

TEST_P(Meaning, ExscanGivesWhatTheRanksBeforeComeToAndNothingToTheFirst) {
  for (const int ranks : {1, 2, 4, 5}) {
    on_every_algorithm({.collective = Collective::exscan, .ranks = ranks},
                       [](Communicator& communicator, const Schedule& schedule) {
                         const int r = communicator.rank();
                         const std::array<std::int32_t, 2> mine{r + 1, -10 * r};
                         std::array<std::int32_t, 2> in = mine, out{kUntouched, kUntouched};
                         const std::array<std::int32_t, 2> sums{r * (r + 1) / 2, -5 * r * (r - 1)};
                         Call call{.collective = Collective::exscan,
                                   .dtype = Dtype::i32,
                                   .op = Op::sum,
                                   .count = 2,
                                   .input = in.data(),
                                   .output = out.data(),
                                   .schedule = &schedule};
                         ASSERT_TRUE(communicator.run(call).is_ok());
                         EXPECT_EQ(out, r == 0 ? (std::array{kUntouched, kUntouched}) : sums);
                         EXPECT_EQ(in, mine) << "the input was written";
                         if (r == 0) call.output = nullptr;
                         ASSERT_TRUE(communicator.run(call).is_ok());
                         call.input = call.output = in.data();
                         call.is_in_place = true;
                         ASSERT_TRUE(communicator.run(call).is_ok());
                         EXPECT_EQ(in, r == 0 ? mine : sums) << "in place differs from out of place";
                       });
  }
}

TEST_P(Meaning, PremulSumOfAScanMultipliesEachInputByItsRanksFactor) {
  for (const Collective collective : {Collective::scan, Collective::exscan}) {
    on_every_algorithm({.collective = collective, .ranks = 4},
                       [&](Communicator& communicator, const Schedule& schedule) {
                         const int r = communicator.rank();
                         const std::int32_t in = r + 1, factor = 10 * (r + 1);
                         std::int32_t out = kUntouched;
                         ASSERT_TRUE(communicator
                                         .run({.collective = collective,
                                               .dtype = Dtype::i32,
                                               .op = Op::premul_sum,
                                               .count = 1,
                                               .input = &in,
                                               .output = &out,
                                               .factor = &factor,
                                               .schedule = &schedule})
                                         .is_ok());
                         constexpr std::array kScaled{kUntouched, 10, 50, 140, 300};  // 10 * (1 + 4 + 9 + 16)
                         const int summands = collective == Collective::scan ? r + 1 : r;
                         EXPECT_EQ(out, kScaled.at(static_cast<std::size_t>(summands)));
                       });
  }
}

TEST_P(Meaning, AScanHasNoAvgAndThePublicCallsSayWhy) {
  on_ranks(GetParam(), 3, [](Communicator& communicator) {
    const int r = communicator.rank();
    const float in = static_cast<float>(r) + 1;
    float up_to = -1, before = -1;
    const Status refused = communicator.scan(&in, &up_to, 1, Dtype::f32, {Op::avg});
    EXPECT_EQ(refused.code(), Code::invalid_argument);
    EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("op avg does not exist for scan"));
    EXPECT_EQ(communicator.exscan(&in, &before, 1, Dtype::f32, {Op::avg}).code(), Code::invalid_argument);
    ASSERT_TRUE(communicator.scan(&in, &up_to, 1, Dtype::f32, {Op::prod}).is_ok());
    ASSERT_TRUE(communicator.exscan(&in, &before, 1, Dtype::f32, {Op::max}).is_ok());
    constexpr std::array kFactorials{1.0F, 2.0F, 6.0F};
    EXPECT_EQ(up_to, kFactorials.at(static_cast<std::size_t>(r)));
    EXPECT_EQ(before, r == 0 ? -1 : static_cast<float>(r));
  });
}

// ---- all_to_all

TEST_P(Meaning, AllToAllMakesRowsColumns) {
  on_every_algorithm({.collective = Collective::all_to_all, .ranks = 4},
                     [](Communicator& communicator, const Schedule& schedule) {
                       const int r = communicator.rank();
                       const std::array<std::int32_t, 4> row{10 * r, 10 * r + 1, 10 * r + 2, 10 * r + 3};
                       std::array<std::int32_t, 4> in = row, out{kUntouched, kUntouched, kUntouched, kUntouched};
                       Call call{.collective = Collective::all_to_all,
                                 .dtype = Dtype::i32,
                                 .count = 1,
                                 .input = in.data(),
                                 .output = out.data(),
                                 .schedule = &schedule};
                       ASSERT_TRUE(communicator.run(call).is_ok());
                       EXPECT_THAT(out, ElementsAre(r, 10 + r, 20 + r, 30 + r));
                       EXPECT_EQ(in, row) << "the input was written";
                       call.output = in.data();
                       call.is_in_place = true;
                       ASSERT_TRUE(communicator.run(call).is_ok());
                       EXPECT_EQ(in, out) << "in place";
                     });
}

TEST_P(Meaning, AllToAllKeepsTheOrderWithinABlock) {
  on_every_algorithm(
      {.collective = Collective::all_to_all, .ranks = 2}, [](Communicator& communicator, const Schedule& schedule) {
        const bool is_first = communicator.rank() == 0;
        const std::array<std::int32_t, 4> in = is_first ? std::array{1, 2, 3, 4} : std::array{5, 6, 7, 8};
        std::array<std::int32_t, 4> out{};
        ASSERT_TRUE(communicator
                        .run({.collective = Collective::all_to_all,
                              .dtype = Dtype::i32,
                              .count = 2,
                              .input = in.data(),
                              .output = out.data(),
                              .schedule = &schedule})
                        .is_ok());
        if (is_first) {
          EXPECT_THAT(out, ElementsAre(1, 2, 5, 6));
        } else {
          EXPECT_THAT(out, ElementsAre(3, 4, 7, 8));
        }
      });
}

// ---- barrier

TEST_P(Meaning, NobodyLeavesABarrierBeforeTheLastHasEntered) {
  Common<std::atomic<int>> entered;
  on_ranks(GetParam(), 4, [&](Communicator& communicator) {
    for (int round = 1; round <= 50; ++round) {
      ++*entered;
      ASSERT_TRUE(communicator.barrier().is_ok());
      ASSERT_GE(entered->load(), 4 * round);
      ASSERT_TRUE(communicator.barrier().is_ok());  // nobody enters the next round before all have looked
    }
  });
}

// ---- edges

TEST_P(Meaning, CountZeroTouchesNothingAndNeedsNoBuffers) {
  for (const Collective collective : {Collective::all_reduce, Collective::broadcast, Collective::all_to_all}) {
    on_every_algorithm({.collective = collective, .ranks = 3},
                       [&](Communicator& communicator, const Schedule& schedule) {
                         const Status status = communicator.run({.collective = collective,
                                                                 .op = is_reducing(collective) ? Op::sum : Op::none,
                                                                 .count = 0,
                                                                 .schedule = &schedule});
                         EXPECT_TRUE(status.is_ok()) << status.message();
                       });
  }
}

TEST_P(Meaning, CountsBelowTheNumberOfRanksAreRight) {
  for (const Count count : {1, 2, 3}) {
    on_every_algorithm({.collective = Collective::all_reduce, .ranks = 4},
                       [&](Communicator& communicator, const Schedule& schedule) {
                         const auto rank = static_cast<float>(communicator.rank());
                         const std::array<float, 4> in{rank, 10 * rank, 100 * rank, -1};
                         std::array<float, 4> out{-7, -7, -7, -7};
                         ASSERT_TRUE(communicator
                                         .run({.collective = Collective::all_reduce,
                                               .op = Op::sum,
                                               .count = count,
                                               .input = in.data(),
                                               .output = out.data(),
                                               .schedule = &schedule})
                                         .is_ok());
                         const std::array<float, 3> sums{6, 60, 600};
                         for (std::size_t i = 0; i < out.size(); ++i) {
                           EXPECT_EQ(out[i], i < static_cast<std::size_t>(count) ? sums[i] : -7.0F) << i;
                         }
                       });
  }
}

TEST_P(Meaning, BuffersMayLieAtAnyElement) {
  on_every_algorithm({.collective = Collective::all_reduce, .ranks = 3},
                     [](Communicator& communicator, const Schedule& schedule) {
                       std::array<BFloat16, 8> in{}, out{};
                       for (std::size_t i = 0; i < in.size(); ++i) in[i] = BFloat16::from_float(static_cast<float>(i));
                       ASSERT_TRUE(communicator
                                       .run({.collective = Collective::all_reduce,
                                             .dtype = Dtype::bf16,
                                             .op = Op::sum,
                                             .count = 5,
                                             .input = in.data() + 1,
                                             .output = out.data() + 2,
                                             .schedule = &schedule})
                                       .is_ok());
                       std::array<float, 8> sums{};
                       for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = out[i].to_float();
                       EXPECT_THAT(sums, ElementsAre(0, 0, 3, 6, 9, 12, 15, 0));
                     });
}

TEST_P(Meaning, OneRankAloneCopies) {
  for (const Collective collective : {Collective::all_reduce, Collective::broadcast, Collective::all_to_all}) {
    for (const Op op : is_reducing(collective) ? all_ops() : std::vector{Op::none}) {
      on_every_algorithm({.collective = collective, .ranks = 1},
                         [&](Communicator& communicator, const Schedule& schedule) {
                           const std::array<std::int32_t, 2> in{-7, 8};
                           std::array<std::int32_t, 2> out{};
                           const std::int32_t factor = 1;  // of premul_sum
                           ASSERT_TRUE(communicator
                                           .run({.collective = collective,
                                                 .dtype = Dtype::i32,
                                                 .op = op,
                                                 .count = 2,
                                                 .input = in.data(),
                                                 .output = out.data(),
                                                 .factor = &factor,
                                                 .schedule = &schedule})
                                           .is_ok());
                           EXPECT_EQ(out, in);
                         });
    }
  }
  on_ranks(GetParam(), 1, [](Communicator& communicator) { EXPECT_TRUE(communicator.barrier().is_ok()); });
}

TEST_P(Meaning, SharedBuffersGiveTheSameResult) {
  for (const Collective collective : {Collective::all_reduce, Collective::broadcast, Collective::all_to_all}) {
    on_every_algorithm(
        {.collective = collective, .ranks = 2}, [&](Communicator& communicator, const Schedule& schedule) {
          const bool is_first = communicator.rank() == 0;
          auto* in = static_cast<std::int32_t*>(communicator.alloc_shared(2 * sizeof(std::int32_t)).value());
          auto* out = static_cast<std::int32_t*>(communicator.alloc_shared(2 * sizeof(std::int32_t)).value());
          in[0] = is_first ? 1 : 3;
          in[1] = is_first ? 2 : 4;
          const Status status = communicator.run({.collective = collective,
                                                  .dtype = Dtype::i32,
                                                  .op = is_reducing(collective) ? Op::sum : Op::none,
                                                  .count = collective == Collective::all_to_all ? 1 : 2,
                                                  .input = in,
                                                  .output = out,
                                                  .buffers = Buffers::shared,
                                                  .schedule = &schedule});
          ASSERT_TRUE(status.is_ok()) << status.message();
          const std::array<std::int32_t, 2> result{out[0], out[1]};
          if (collective == Collective::all_reduce) {
            EXPECT_THAT(result, ElementsAre(4, 6));
          }
          if (collective == Collective::broadcast) {
            EXPECT_THAT(result, ElementsAre(1, 2));
          }
          if (collective == Collective::all_to_all && is_first) {
            EXPECT_THAT(result, ElementsAre(1, 3));
          }
          if (collective == Collective::all_to_all && !is_first) {
            EXPECT_THAT(result, ElementsAre(2, 4));
          }
          ASSERT_TRUE(communicator.barrier().is_ok());
          communicator.free_shared(out);
          communicator.free_shared(in);
        });
  }
}

TEST(MeaningOfShared, PrivateMemoryPassedAsSharedIsRefused) {
  on_ranks(Kind::processes, 1, [](Communicator& communicator) {
    std::array<float, 2> in{}, out{};
    const Status status = communicator.all_reduce(in.data(), out.data(), 2, Dtype::f32, Op::sum, Buffers::shared);
    EXPECT_EQ(status.code(), Code::invalid_argument);
    EXPECT_THAT(status.message(), testing::HasSubstr("the input of 8 bytes"));
    EXPECT_THAT(status.message(), testing::HasSubstr("is not from alloc_shared: pass Buffers::private_"));
  });
}

}  // namespace
}  // namespace tutti
