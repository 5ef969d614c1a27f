// SPDX-License-Identifier: Apache-2.0
// What the collectives mean, in literals: small inputs written out, results that a reader can add up. Every rule of
// impl/collective/README.md points at one of these tests. Each runs on every algorithm that the rule holds for, with
// ranks as threads and as processes.
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/conformance/ranks.h"

namespace tutti {
namespace {

using testing::Each;
using testing::ElementsAre;

constexpr std::int32_t kUntouched = -77;

class Literal : public testing::TestWithParam<Kind> {
 protected:
  /// Every algorithm of `collective` on so many ranks, one after the other.
  void on_every_algorithm(const Problem& problem, const std::function<void(Communicator&, const Schedule&)>& body) {
    std::vector<std::string> names;
    for (const Algorithm* algorithm : algorithms_of(problem.collective)) names.emplace_back(algorithm->name);
    on_algorithms(problem, names, body);
  }
  void on_algorithms(const Problem& problem, const std::vector<std::string>& names,
                     const std::function<void(Communicator&, const Schedule&)>& body) {
    std::vector<Schedule> schedules;
    for (const std::string& name : names) {
      const auto algorithm = find_algorithm(problem.collective, name);
      ASSERT_TRUE(algorithm.is_ok()) << algorithm.status().message();
      schedules.push_back(schedule_of(*algorithm.value(), problem));
    }
    on_ranks(GetParam(), problem.ranks, [&](Communicator& communicator) {
      for (const Schedule& schedule : schedules) {
        SCOPED_TRACE(schedule.name);
        body(communicator, schedule);
      }
    });
  }

  template <class T>
  static constexpr Dtype dtype_of() {
    if constexpr (std::is_same_v<T, float>) return Dtype::f32;
    if constexpr (std::is_same_v<T, BFloat16>) return Dtype::bf16;
    return Dtype::i32;
  }

  /// The result on this rank of an all_reduce in which rank r gives `values[r]`, checked to be the same out of and in
  /// place.
  template <class T>
  static T all_reduced(Communicator& communicator, const Schedule& schedule, Op op, const std::vector<T>& values) {
    const T mine = values[static_cast<std::size_t>(communicator.rank())];
    T in = mine, out{}, both = mine;
    Call call{.collective = Collective::all_reduce,
              .dtype = dtype_of<T>(),
              .op = op,
              .count = 1,
              .input = &in,
              .output = &out,
              .schedule = &schedule};
    Status status = communicator.run(call);
    EXPECT_TRUE(status.is_ok()) << status.message();
    EXPECT_EQ(std::memcmp(&in, &mine, sizeof(T)), 0) << "the input was written";
    call.input = call.output = &both;
    call.is_in_place = true;
    status = communicator.run(call);
    EXPECT_TRUE(status.is_ok()) << status.message();
    EXPECT_EQ(std::memcmp(&both, &out, sizeof(T)), 0) << "in place differs from out of place";
    return out;
  }

  template <class T>
  void expect_all_reduced(Op op, const std::vector<T>& values, T expected) {
    on_every_algorithm({.collective = Collective::all_reduce, .ranks = static_cast<int>(values.size())},
                       [&](Communicator& communicator, const Schedule& schedule) {
                         EXPECT_EQ(all_reduced<T>(communicator, schedule, op, values), expected);
                       });
  }
};

INSTANTIATE_TEST_SUITE_P(Ranks, Literal, testing::Values(Kind::threads, Kind::processes), [](const auto& instance) {
  return instance.param == Kind::threads ? "as_threads" : "as_processes";
});

// ---- arithmetic

TEST_P(Literal, SumOfOnesIsTheNumberOfRanks) {
  expect_all_reduced<float>(Op::sum, {1, 1, 1, 1}, 4.0F);
  expect_all_reduced<std::int32_t>(Op::sum, {1, 2, 3, 4, 5}, 15);
}

TEST_P(Literal, SumOfInt32Wraps) {
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min();
  expect_all_reduced<std::int32_t>(Op::sum, {kMost, 1, 0, 0}, kLeast);
  expect_all_reduced<std::int32_t>(Op::sum, {kLeast, kLeast, 0, 5}, 5);
}

TEST_P(Literal, AvgOfInt32IsTruncatedTowardsZero) {
  expect_all_reduced<std::int32_t>(Op::avg, {7, 0, 0, 0}, 1);
  expect_all_reduced<std::int32_t>(Op::avg, {-7, 0, 0, 0}, -1);
  expect_all_reduced<std::int32_t>(Op::avg, {-3, 0, 0, 0}, 0);
}

TEST_P(Literal, AvgOfInt32DividesTheWrappedSum) {
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  expect_all_reduced<std::int32_t>(Op::avg, {kMost, 1, 0, 0}, std::numeric_limits<std::int32_t>::min() / 4);
}

TEST_P(Literal, AvgOfFloatDividesTheSumByTheRanks) {
  expect_all_reduced<float>(Op::avg, {1, 2, 3, 4}, 2.5F);
  expect_all_reduced<float>(Op::avg, {1, 0, 0}, 1.0F / 3.0F);
}

TEST_P(Literal, MaxIsSigned) {
  expect_all_reduced<std::int32_t>(Op::max, {-5, -2, -9, -3}, -2);
  expect_all_reduced<float>(Op::max, {-0.5F, 3.25F, 3.0F, -8.0F}, 3.25F);
}

TEST_P(Literal, MaxPropagatesANanFromAnyRank) {
  for (int culprit = 0; culprit < 4; ++culprit) {
    std::vector<float> values{1, 2, 3, 4};
    values[static_cast<std::size_t>(culprit)] = std::numeric_limits<float>::quiet_NaN();
    on_every_algorithm({.collective = Collective::all_reduce, .ranks = 4},
                       [&](Communicator& communicator, const Schedule& schedule) {
                         EXPECT_TRUE(std::isnan(all_reduced(communicator, schedule, Op::max, values)));
                       });
  }
}

TEST_P(Literal, MaxOfTheZerosIsThePositiveOne) {
  on_every_algorithm({.collective = Collective::all_reduce, .ranks = 3},
                     [&](Communicator& communicator, const Schedule& schedule) {
                       const float zero = all_reduced<float>(communicator, schedule, Op::max, {-0.0F, 0.0F, -0.0F});
                       EXPECT_EQ(zero, 0.0F);
                       EXPECT_FALSE(std::signbit(zero));
                     });
}

// 257 lies between the bfloat16 256 and 258 and is rounded to the even 256.
TEST_P(Literal, Bfloat16IsAccumulatedInFloatAndRoundedOncePerMove) {
  const std::vector<BFloat16> values{BFloat16::from_float(256), BFloat16::from_float(1), BFloat16::from_float(1),
                                     BFloat16::from_float(0)};
  const Problem problem{.collective = Collective::all_reduce, .ranks = 4};
  on_algorithms(problem, {"one_shot", "two_shot"}, [&](Communicator& communicator, const Schedule& schedule) {
    EXPECT_EQ(all_reduced(communicator, schedule, Op::sum, values).to_float(), 258.0F) << "one MOVE adds all four";
  });
  on_algorithms(problem, {"ring"}, [&](Communicator& communicator, const Schedule& schedule) {
    EXPECT_EQ(all_reduced(communicator, schedule, Op::sum, values).to_float(), 256.0F) << "each rank rounds in turn";
  });
}

// 256 + 3 + 2 = 261 is no bfloat16: rounded before the division it would be 260, and 260 / 3 is nearest to 86.5.
TEST_P(Literal, AvgOfBfloat16IsDividedBeforeItIsRounded) {
  const std::vector<BFloat16> values{BFloat16::from_float(256), BFloat16::from_float(3), BFloat16::from_float(2)};
  on_algorithms({.collective = Collective::all_reduce, .ranks = 3}, {"one_shot", "two_shot"},
                [&](Communicator& communicator, const Schedule& schedule) {
                  EXPECT_EQ(all_reduced(communicator, schedule, Op::avg, values).to_float(), 87.0F);
                });
}

// 1e8 + 1 is 1e8 in float, so the order shows: only in rank order does 0.5 remain.
TEST_P(Literal, DirectReductionsAddInRankOrder) {
  on_algorithms({.collective = Collective::all_reduce, .ranks = 4}, {"one_shot", "two_shot"},
                [](Communicator& communicator, const Schedule& schedule) {
                  EXPECT_EQ(all_reduced<float>(communicator, schedule, Op::sum, {1e8F, 1.0F, -1e8F, 0.5F}), 0.5F);
                });
}

TEST_P(Literal, EveryRankHasTheSameBits) {
  struct Seen {
    std::array<std::array<float, 5>, 8> of;  // [algorithm][rank]
  };
  Common<Seen> seen;
  for (auto& row : seen->of) row = {1000, 1001, 1002, 1003, 1004};  // differs where nobody writes
  const auto algorithms = algorithms_of(Collective::all_reduce);
  on_every_algorithm(
      {.collective = Collective::all_reduce, .ranks = 5}, [&](Communicator& communicator, const Schedule& schedule) {
        const float sum = all_reduced<float>(communicator, schedule, Op::sum, {0.1F, 1e7F, 0.3F, -1e7F, 0.7F});
        for (std::size_t i = 0; i < algorithms.size(); ++i) {
          if (algorithms[i]->name == schedule.name) seen->of[i][static_cast<std::size_t>(communicator.rank())] = sum;
        }
      });
  for (std::size_t i = 0; i < algorithms.size(); ++i) {
    EXPECT_THAT(seen->of[i], Each(seen->of[i][0])) << algorithms[i]->name;
  }
}

// ---- broadcast

TEST_P(Literal, BroadcastGivesTheRootsInputToEveryRank) {
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

TEST_P(Literal, BroadcastInPlaceIsOneBufferOnEveryRank) {
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

// ---- all_to_all

TEST_P(Literal, AllToAllMakesRowsColumns) {
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

TEST_P(Literal, AllToAllKeepsTheOrderWithinABlock) {
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

TEST_P(Literal, NobodyLeavesABarrierBeforeTheLastHasEntered) {
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

TEST_P(Literal, CountZeroTouchesNothingAndNeedsNoBuffers) {
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

TEST_P(Literal, CountsBelowTheNumberOfRanksAreRight) {
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

TEST_P(Literal, BuffersMayLieAtAnyElement) {
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

TEST_P(Literal, OneRankAloneCopies) {
  for (const Collective collective : {Collective::all_reduce, Collective::broadcast, Collective::all_to_all}) {
    for (const Op op : is_reducing(collective) ? all_ops() : std::vector{Op::none}) {
      on_every_algorithm({.collective = collective, .ranks = 1},
                         [&](Communicator& communicator, const Schedule& schedule) {
                           const std::array<std::int32_t, 2> in{-7, 8};
                           std::array<std::int32_t, 2> out{};
                           ASSERT_TRUE(communicator
                                           .run({.collective = collective,
                                                 .dtype = Dtype::i32,
                                                 .op = op,
                                                 .count = 2,
                                                 .input = in.data(),
                                                 .output = out.data(),
                                                 .schedule = &schedule})
                                           .is_ok());
                           EXPECT_EQ(out, in);
                         });
    }
  }
  on_ranks(GetParam(), 1, [](Communicator& communicator) { EXPECT_TRUE(communicator.barrier().is_ok()); });
}

TEST_P(Literal, SharedBuffersGiveTheSameResult) {
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

TEST(LiteralShm, PrivateMemoryPassedAsSharedIsRefused) {
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
