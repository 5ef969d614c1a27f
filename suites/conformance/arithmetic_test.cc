// SPDX-License-Identifier: Apache-2.0
// The rules of arithmetic, in literals: small inputs written out, results that a reader can add up. Every rule of
// impl/collective/README.md points at one of the tests here or in meaning_test.cc.
#include <array>
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/conformance/literal.h"

namespace tutti {
namespace {

using testing::Each;

class Arithmetic : public Literal {};
INSTANTIATE_TEST_SUITE_P(Ranks, Arithmetic, testing::Values(Kind::threads, Kind::processes), kind_name);

TEST_P(Arithmetic, SumOfOnesIsTheNumberOfRanks) {
  expect_all_reduced<float>(Op::sum, {1, 1, 1, 1}, 4.0F);
  expect_all_reduced<std::int32_t>(Op::sum, {1, 2, 3, 4, 5}, 15);
}

TEST_P(Arithmetic, SumOfInt32Wraps) {
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min();
  expect_all_reduced<std::int32_t>(Op::sum, {kMost, 1, 0, 0}, kLeast);
  expect_all_reduced<std::int32_t>(Op::sum, {kLeast, kLeast, 0, 5}, 5);
}

TEST_P(Arithmetic, AvgOfInt32IsTruncatedTowardsZero) {
  expect_all_reduced<std::int32_t>(Op::avg, {7, 0, 0, 0}, 1);
  expect_all_reduced<std::int32_t>(Op::avg, {-7, 0, 0, 0}, -1);
  expect_all_reduced<std::int32_t>(Op::avg, {-3, 0, 0, 0}, 0);
}

TEST_P(Arithmetic, AvgOfInt32DividesTheWrappedSum) {
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  expect_all_reduced<std::int32_t>(Op::avg, {kMost, 1, 0, 0}, std::numeric_limits<std::int32_t>::min() / 4);
}

TEST_P(Arithmetic, AvgOfFloatDividesTheSumByTheRanks) {
  expect_all_reduced<float>(Op::avg, {1, 2, 3, 4}, 2.5F);
  expect_all_reduced<float>(Op::avg, {1, 0, 0}, 1.0F / 3.0F);
}

TEST_P(Arithmetic, MaxIsSigned) {
  expect_all_reduced<std::int32_t>(Op::max, {-5, -2, -9, -3}, -2);
  expect_all_reduced<float>(Op::max, {-0.5F, 3.25F, 3.0F, -8.0F}, 3.25F);
}

TEST_P(Arithmetic, MaxPropagatesANanFromAnyRank) {
  for (int culprit = 0; culprit < 4; ++culprit) {
    std::vector<float> values{1, 2, 3, 4};
    values[static_cast<std::size_t>(culprit)] = std::numeric_limits<float>::quiet_NaN();
    on_every_algorithm({.collective = Collective::all_reduce, .ranks = 4},
                       [&](Communicator& communicator, const Schedule& schedule) {
                         EXPECT_TRUE(std::isnan(all_reduced(communicator, schedule, Op::max, values)));
                       });
  }
}

TEST_P(Arithmetic, MaxOfTheZerosIsThePositiveOne) {
  on_every_algorithm({.collective = Collective::all_reduce, .ranks = 3},
                     [&](Communicator& communicator, const Schedule& schedule) {
                       const float zero = all_reduced<float>(communicator, schedule, Op::max, {-0.0F, 0.0F, -0.0F});
                       EXPECT_EQ(zero, 0.0F);
                       EXPECT_FALSE(std::signbit(zero));
                     });
}

// 257 lies between the bfloat16 256 and 258 and is rounded to the even 256.
TEST_P(Arithmetic, Bfloat16IsAccumulatedInFloatAndRoundedOncePerMove) {
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
TEST_P(Arithmetic, AvgOfBfloat16IsDividedBeforeItIsRounded) {
  const std::vector<BFloat16> values{BFloat16::from_float(256), BFloat16::from_float(3), BFloat16::from_float(2)};
  on_algorithms({.collective = Collective::all_reduce, .ranks = 3}, {"one_shot", "two_shot"},
                [&](Communicator& communicator, const Schedule& schedule) {
                  EXPECT_EQ(all_reduced(communicator, schedule, Op::avg, values).to_float(), 87.0F);
                });
}

constexpr std::size_t kLong =
    5 * 16;  // a cache line for each of five ranks: every rank has a part of its own to reduce
using Block = std::array<float, kLong>;

/// The sums on this rank of a block whose elements are all `values[rank]`.
Block sums_of(Communicator& communicator, const Schedule& schedule, const std::vector<float>& values) {
  Block in, out{};
  in.fill(values[static_cast<std::size_t>(communicator.rank())]);
  const Status status = communicator.run({.collective = Collective::all_reduce,
                                          .op = Op::sum,
                                          .count = kLong,
                                          .input = in.data(),
                                          .output = out.data(),
                                          .schedule = &schedule});
  EXPECT_TRUE(status.is_ok()) << status.message();
  return out;
}

// 1e8 + 1 is 1e8 in float, so the order shows: only in rank order does 0.5 remain.
TEST_P(Arithmetic, DirectReductionsAddInRankOrder) {
  on_algorithms({.collective = Collective::all_reduce, .ranks = 5}, {"one_shot", "two_shot"},
                [](Communicator& communicator, const Schedule& schedule) {
                  EXPECT_THAT(sums_of(communicator, schedule, {1e8F, 1, 1, -1e8F, 0.5F}), Each(0.5F));
                });
}

TEST_P(Arithmetic, EveryRankHasTheSameBits) {
  struct Seen {
    std::array<std::array<Block, 5>, 8> of;  // [algorithm][rank]
  };
  Common<Seen> seen;
  const auto algorithms = algorithms_of(Collective::all_reduce);
  on_every_algorithm({.collective = Collective::all_reduce, .ranks = 5},
                     [&](Communicator& communicator, const Schedule& schedule) {
                       const Block sums = sums_of(communicator, schedule, {0.1F, 1e7F, 0.3F, -1e7F, 0.7F});
                       for (std::size_t i = 0; i < algorithms.size(); ++i) {
                         const auto rank = static_cast<std::size_t>(communicator.rank());
                         if (algorithms[i]->name == schedule.name) seen->of.at(i)[rank] = sums;
                       }
                     });
  for (std::size_t i = 0; i < algorithms.size(); ++i) {
    EXPECT_THAT(seen->of[i], Each(seen->of[i][0])) << algorithms[i]->name;
    EXPECT_THAT(seen->of[i][0], Each(testing::FloatNear(1.0F, 0.75F))) << algorithms[i]->name;
  }
}

}  // namespace
}  // namespace tutti
