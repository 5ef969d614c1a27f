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
INSTANTIATE_TEST_SUITE_P(Ranks, Arithmetic, testing::Values(Kind::threads, Kind::processes, Kind::blocks), kind_name);

TEST_P(Arithmetic, SumOfOnesIsTheNumberOfRanks) {
  expect_all_reduced<float>(Op::sum, {1, 1, 1, 1}, 4.0F);
  expect_all_reduced<std::int32_t>(Op::sum, {1, 2, 3, 4, 5}, 15);
}

template <class T>
constexpr T kMost = std::numeric_limits<T>::max();
template <class T>
constexpr T kLeast = std::numeric_limits<T>::min();

TEST_P(Arithmetic, SumOfIntegersWraps) {
  expect_all_reduced<std::int8_t>(Op::sum, {127, 1, 0, 0}, -128);
  expect_all_reduced<std::uint8_t>(Op::sum, {200, 100, 1, 0}, 45);
  expect_all_reduced<std::int16_t>(Op::sum, {32767, 1, 0, 0}, -32768);
  expect_all_reduced<std::uint16_t>(Op::sum, {65535, 2, 0, 5}, 6);
  expect_all_reduced<std::int32_t>(Op::sum, {kMost<std::int32_t>, 1, 0, 0}, kLeast<std::int32_t>);
  expect_all_reduced<std::int32_t>(Op::sum, {kLeast<std::int32_t>, kLeast<std::int32_t>, 0, 5}, 5);
  expect_all_reduced<std::uint32_t>(Op::sum, {4294967295U, 2, 0, 5}, 6);
  expect_all_reduced<std::int64_t>(Op::sum, {kMost<std::int64_t>, 1, 0, 0}, kLeast<std::int64_t>);
  expect_all_reduced<std::uint64_t>(Op::sum, {kMost<std::uint64_t>, 2, 0, 5}, 6);
}

TEST_P(Arithmetic, ProdOfIntegersWraps) {
  expect_all_reduced<std::int8_t>(Op::prod, {3, -5, 7, 1}, -105);
  expect_all_reduced<std::int8_t>(Op::prod, {16, 16, 3, 1}, 0);
  expect_all_reduced<std::uint8_t>(Op::prod, {255, 255, 3, 1}, 3);
  expect_all_reduced<std::int16_t>(Op::prod, {32767, 2, 1, 1}, -2);
  expect_all_reduced<std::uint16_t>(Op::prod, {65535, 65535, 3, 1}, 3);
  expect_all_reduced<std::int32_t>(Op::prod, {kMost<std::int32_t>, 2, 1, 1}, -2);
  expect_all_reduced<std::uint32_t>(Op::prod, {65537, 65537, 1, 1}, 131073);
  expect_all_reduced<std::int64_t>(Op::prod, {kMost<std::int64_t>, 2, 1, 1}, -2);
  expect_all_reduced<std::uint64_t>(Op::prod, {4294967297U, 4294967297U, 1, 1}, 8589934593U);
}

TEST_P(Arithmetic, MinAndMaxOfIntegersAreThoseOfTheType) {
  expect_all_reduced<std::int8_t>(Op::min, {5, -1, 100, -128}, -128);
  expect_all_reduced<std::int8_t>(Op::max, {-5, -1, -100, -128}, -1);
  expect_all_reduced<std::uint8_t>(Op::min, {255, 128, 127, 200}, 127);
  expect_all_reduced<std::uint8_t>(Op::max, {255, 1, 127, 200}, 255);
  expect_all_reduced<std::int16_t>(Op::min, {5, -1, 300, -32768}, -32768);
  expect_all_reduced<std::uint16_t>(Op::max, {1, 32768, 2, 3}, 32768);
  expect_all_reduced<std::int32_t>(Op::max, {-5, -2, -9, -3}, -2);
  expect_all_reduced<std::uint32_t>(Op::max, {1, 2147483648U, 2, 3}, 2147483648U);
  expect_all_reduced<std::int64_t>(Op::min, {0, -1, kLeast<std::int64_t>, 1}, kLeast<std::int64_t>);
  expect_all_reduced<std::uint64_t>(Op::min, {kMost<std::uint64_t>, 7, kMost<std::uint64_t> / 2 + 1, 9}, 7);
}

TEST_P(Arithmetic, BitsAreCombined) {
  expect_all_reduced<std::uint8_t>(Op::band, {0x6c, 0x5f, 0x7e, 0xff}, 0x4c);
  expect_all_reduced<std::uint8_t>(Op::bor, {0x24, 0x11, 0x40, 0}, 0x75);
  expect_all_reduced<std::uint8_t>(Op::bxor, {0x6c, 0x5f, 0x7e, 0}, 0x4d);
  expect_all_reduced<std::int8_t>(Op::bor, {-128, 1, 0, 0}, -127);
  expect_all_reduced<std::int16_t>(Op::bor, {-32768, 1, 0, 0}, -32767);
  expect_all_reduced<std::uint16_t>(Op::bxor, {0xffff, 0x00ff, 0, 0}, 0xff00);
  expect_all_reduced<std::int32_t>(Op::band, {-1, 0x7fff0000, 0x12345678, -1}, 0x12340000);
  expect_all_reduced<std::uint32_t>(Op::bxor, {0xffffffffU, 0x0000ffffU, 0, 0}, 0xffff0000U);
  expect_all_reduced<std::int64_t>(Op::bor, {1, std::int64_t{1} << 40, 0, kLeast<std::int64_t>},
                                   kLeast<std::int64_t> + 1 + (std::int64_t{1} << 40));
  expect_all_reduced<std::uint64_t>(Op::bxor, {kMost<std::uint64_t>, kMost<std::uint64_t>, 5, 0}, 5);
}

TEST_P(Arithmetic, BoolsAreTrueIfAnyOrEveryRanksIs) {
  for (const Op op : {Op::sum, Op::max, Op::bor}) {
    expect_all_reduced<Boolean>(op, {0, 0, 1, 0}, 1);
    expect_all_reduced<Boolean>(op, {1, 1, 1, 1}, 1);
    expect_all_reduced<Boolean>(op, {0, 0, 0, 0}, 0);
  }
  for (const Op op : {Op::min, Op::band}) {
    expect_all_reduced<Boolean>(op, {1, 1, 0, 1}, 0);
    expect_all_reduced<Boolean>(op, {1, 1, 1, 1}, 1);
    expect_all_reduced<Boolean>(op, {0, 0, 0, 0}, 0);
  }
}

TEST_P(Arithmetic, AnyByteButZeroIsTrueAndResultsAreZeroOrOne) {
  for (const Op op : {Op::sum, Op::max, Op::bor}) expect_all_reduced<Boolean>(op, {0, 2, 0, 128}, 1);
  for (const Op op : {Op::min, Op::band}) {
    expect_all_reduced<Boolean>(op, {1, 2, 4, 255}, 1);
    expect_all_reduced<Boolean>(op, {255, 2, 0, 4}, 0);
  }
}

TEST_P(Arithmetic, BoolHasNoArithmetic) {
  on_ranks(GetParam(), 2, [](Communicator& communicator) {
    Boolean in = 1, out = 0;
    for (const Op op : {Op::prod, Op::avg, Op::bxor}) {
      const Status status = communicator.all_reduce(&in, &out, 1, Dtype::boolean, op);
      EXPECT_EQ(status.code(), Code::invalid_argument) << to_string(op);
    }
  });
}

TEST_P(Arithmetic, AvgOfIntegersIsTruncatedTowardsZero) {
  expect_all_reduced<std::int32_t>(Op::avg, {7, 0, 0, 0}, 1);
  expect_all_reduced<std::int32_t>(Op::avg, {-7, 0, 0, 0}, -1);
  expect_all_reduced<std::int32_t>(Op::avg, {-3, 0, 0, 0}, 0);
  expect_all_reduced<std::int8_t>(Op::avg, {-100, 1, 0, 0}, -24);
  expect_all_reduced<std::uint8_t>(Op::avg, {100, 100, 0, 55}, 63);
  expect_all_reduced<std::int16_t>(Op::avg, {-32768, 1, 0}, -10922);
  expect_all_reduced<std::uint16_t>(Op::avg, {65535, 0, 0, 0}, 16383);
  expect_all_reduced<std::uint32_t>(Op::avg, {kMost<std::uint32_t>, 0, 0, 0}, 1073741823U);
  expect_all_reduced<std::int64_t>(Op::avg, {kLeast<std::int64_t>, 1, 0}, -3074457345618258602);
  expect_all_reduced<std::uint64_t>(Op::avg, {kMost<std::uint64_t>, 0, 0}, 6148914691236517205U);
}

TEST_P(Arithmetic, PremulSumMultipliesEveryInputByItsRanksFactorOnce) {
  const std::vector<float> values{1, 10, 100, 1000}, factors{2, 3, 5, 7};
  on_every_algorithm({.collective = Collective::all_reduce, .ranks = 4},
                     [&](Communicator& communicator, const Schedule& schedule) {
                       const auto rank = static_cast<std::size_t>(communicator.rank());
                       EXPECT_EQ(all_reduced<float>(communicator, schedule, premul_sum(&factors[rank]), values),
                                 2 * 1 + 3 * 10 + 5 * 100 + 7 * 1000.0F);
                       // Another factor in the next call of the same kind.
                       const float other = static_cast<float>(rank);
                       EXPECT_EQ(all_reduced<float>(communicator, schedule, premul_sum(&other), values), 3210.0F);
                     });
}

TEST_P(Arithmetic, PremulSumRoundsTheProductBeforeItAdds) {
  // 129/128 * 3/2 = 1.51171875 lies between 1.5078125 and 1.515625: to even, 1.515625 (0x3fc2).
  const BFloat16 value{0x3f81}, factor{0x3fc0}, zero{0};
  on_every_algorithm({.collective = Collective::all_reduce, .ranks = 2},
                     [&](Communicator& communicator, const Schedule& schedule) {
                       const Reduction reduction = premul_sum(&factor);
                       EXPECT_EQ(all_reduced<BFloat16>(communicator, schedule, reduction, {value, zero}).bits, 0x3fc2);
                     });
}

TEST_P(Arithmetic, PremulSumWithoutAFactorIsRefused) {
  on_ranks(GetParam(), 2, [](Communicator& communicator) {
    float in = 1, out = 0;
    const Status status = communicator.all_reduce(&in, &out, 1, Dtype::f32, Op::premul_sum);
    EXPECT_EQ(status.code(), Code::invalid_argument);
    EXPECT_THAT(status.message(), testing::HasSubstr("without a factor"));
  });
}

TEST_P(Arithmetic, PremulSumOfOneRankMultipliesToo) {
  const std::int32_t factor = 7;
  on_every_algorithm({.collective = Collective::all_reduce, .ranks = 1},
                     [&](Communicator& communicator, const Schedule& schedule) {
                       EXPECT_EQ(all_reduced<std::int32_t>(communicator, schedule, premul_sum(&factor), {6}), 42);
                     });
}

TEST_P(Arithmetic, AvgOfIntegersDividesTheWrappedSum) {
  expect_all_reduced<std::int32_t>(Op::avg, {kMost<std::int32_t>, 1, 0, 0}, kLeast<std::int32_t> / 4);
  expect_all_reduced<std::int8_t>(Op::avg, {100, 100, 100, 100}, -28);
  expect_all_reduced<std::uint8_t>(Op::avg, {200, 100, 0, 0}, 11);
}

TEST_P(Arithmetic, AvgOfFloatDividesTheSumByTheRanks) {
  expect_all_reduced<float>(Op::avg, {1, 2, 3, 4}, 2.5F);
  expect_all_reduced<float>(Op::avg, {1, 0, 0}, 1.0F / 3.0F);
}

TEST_P(Arithmetic, FloatsAreReducedInTheirOwnPrecision) {
  expect_all_reduced<float>(Op::prod, {1.5F, -2, 4, 0.5F}, -6.0F);
  expect_all_reduced<float>(Op::max, {-0.5F, 3.25F, 3.0F, -8.0F}, 3.25F);
  expect_all_reduced<float>(Op::min, {-0.5F, 3.25F, 3.0F, -8.0F}, -8.0F);
  expect_all_reduced<double>(Op::sum, {0x1p53, 2, -0x1p53, 0}, 2.0);  // 0 in float
  expect_all_reduced<double>(Op::prod, {1 + 0x1p-40, 2, 1, -1}, -2 - 0x1p-39);
  expect_all_reduced<double>(Op::min, {1, 1 + 0x1p-40, 2, 3}, 1.0);
  expect_all_reduced<double>(Op::avg, {1, 0, 0}, 1.0 / 3.0);
}

TEST_P(Arithmetic, SubnormalsAreKept) {
  expect_all_reduced<float>(Op::sum, {0x1p-149F, 0x1p-149F, 0, 0}, 0x1p-148F);
  expect_codes<Half>({}, Op::sum, {0x0001, 0x0001, 0, 0}, 0x0002);
  expect_codes<Float8E4M3>({}, Op::sum, {0x07, 0x01, 0, 0}, 0x08);
}

TEST_P(Arithmetic, MinAndMaxPropagateANanFromAnyRank) {
  for (const Op op : {Op::min, Op::max}) {
    for (std::size_t culprit = 0; culprit < 4; ++culprit) {
      std::vector<float> values{1, 2, 3, 4};
      values[culprit] = std::numeric_limits<float>::quiet_NaN();
      on_every_algorithm({.collective = Collective::all_reduce, .ranks = 4},
                         [&](Communicator& communicator, const Schedule& schedule) {
                           EXPECT_TRUE(std::isnan(all_reduced(communicator, schedule, op, values)));
                         });
    }
    expect_codes<Half>({}, op, {0x3c00, 0x7e00, 0x4000, 0xfc00}, 0x7e00);
    expect_codes<BFloat16>({}, op, {0x3f80, 0x4000, 0x7fc0, 0xff80}, 0x7fc0);
    expect_codes<Float8E4M3>({}, op, {0x38, 0x40, 0x7e, 0xff}, 0x7f);
    expect_codes<Float8E5M2>({}, op, {0x7d, 0x40, 0x7c, 0x3c}, 0x7f);
  }
}

TEST_P(Arithmetic, NegativeZeroLiesBelowPositiveZero) {
  for (const Op op : {Op::min, Op::max}) {
    on_every_algorithm({.collective = Collective::all_reduce, .ranks = 3},
                       [&](Communicator& communicator, const Schedule& schedule) {
                         const float zero = all_reduced<float>(communicator, schedule, op, {-0.0F, 0.0F, -0.0F});
                         EXPECT_EQ(zero, 0.0F);
                         EXPECT_EQ(std::signbit(zero), op == Op::min);
                       });
  }
  expect_codes<Half>({}, Op::min, {0x0000, 0x8000, 0x0000}, 0x8000);
  expect_codes<Float8E4M3>({}, Op::max, {0x80, 0x00, 0x80}, 0x00);
}

// In whatever order: the rest are zeros.
TEST_P(Arithmetic, HalfAndBfloat16OverflowToInfinity) {
  expect_codes<Half>({}, Op::sum, {0x7bff, 0x4b80, 0, 0}, 0x7bff);  // 65504 + 15
  expect_codes<Half>({}, Op::sum, {0x7bff, 0x4c00, 0, 0}, 0x7c00);  // 65504 + 16 is halfway to 65536
  expect_codes<Half>({}, Op::sum, {0xfbff, 0xfbff, 0, 0}, 0xfc00);
  expect_codes<BFloat16>({}, Op::sum, {0x7f7f, 0x7f7f, 0, 0}, 0x7f80);
}

TEST_P(Arithmetic, Float8SaturatesToTheLargest) {
  expect_codes<Float8E4M3>({}, Op::sum, {0x7e, 0x58, 0, 0}, 0x7e);  // 448 + 16
  expect_codes<Float8E4M3>({}, Op::sum, {0xfe, 0xfe, 0, 0}, 0xfe);
  expect_codes<Float8E4M3>({}, Op::prod, {0x7e, 0x7e, 0x38, 0x38}, 0x7e);
  expect_codes<Float8E5M2>({}, Op::sum, {0x7b, 0x7b, 0, 0}, 0x7b);  // 57344 + 57344
  expect_codes<Float8E5M2>({}, Op::sum, {0x7c, 0x3c, 0, 0}, 0x7b);  // infinity + 1
  expect_codes<Float8E5M2>({}, Op::min, {0xfc, 0x3c, 0, 0}, 0xfb);
}

TEST_P(Arithmetic, InfinityLessInfinityIsANan) {
  expect_codes<Float8E5M2>({"one_shot", "two_shot"}, Op::sum, {0x7c, 0xfc, 0, 0}, 0x7f);
  on_every_algorithm({.collective = Collective::all_reduce, .ranks = 2},
                     [&](Communicator& communicator, const Schedule& schedule) {
                       const Half sum = all_reduced<Half>(communicator, schedule, Op::sum, {{0x7c00}, {0xfc00}});
                       EXPECT_TRUE(std::isnan(sum.to_float()));
                     });
}

// 2049 lies between the halves 2048 and 2050, 17 between the f8e4m3 16 and 18, 9 between the f8e5m2 8 and 10.
TEST_P(Arithmetic, HalfAndFloat8AreAccumulatedInFloatAndRoundedOncePerMove) {
  const std::vector<std::string> at_once{"one_shot", "two_shot"}, in_turn{"ring"};
  expect_codes<Half>(at_once, Op::sum, {0x6800, 0x3c00, 0x3c00, 0}, 0x6801);
  expect_codes<Half>(in_turn, Op::sum, {0x6800, 0x3c00, 0x3c00, 0}, 0x6800);
  expect_codes<Float8E4M3>(at_once, Op::sum, {0x58, 0x38, 0x38, 0}, 0x59);
  expect_codes<Float8E4M3>(in_turn, Op::sum, {0x58, 0x38, 0x38, 0}, 0x58);
  expect_codes<Float8E5M2>(at_once, Op::sum, {0x48, 0x3c, 0x3c, 0}, 0x49);
  expect_codes<Float8E5M2>(in_turn, Op::sum, {0x48, 0x3c, 0x3c, 0}, 0x48);
  // 448 + 448 - 448 saturates in between only where ranks add in turn.
  expect_codes<Float8E4M3>(at_once, Op::sum, {0x7e, 0x7e, 0xfe, 0}, 0x7e);
}

// 2051 / 3 is 683.67, in steps of 0.5; rounded before the division it would be 2052 / 3 = 684. 448 + 448 is no f8e4m3.
TEST_P(Arithmetic, AvgOfHalfAndFloat8IsDividedBeforeItIsRounded) {
  expect_codes<Half>({"one_shot", "two_shot"}, Op::avg, {0x6800, 0x3c00, 0x4000}, 0x6157);
  expect_codes<Float8E4M3>({"one_shot", "two_shot"}, Op::avg, {0x7e, 0x7e}, 0x7e);
  expect_codes<Float8E5M2>({"one_shot", "two_shot"}, Op::avg, {0x7b, 0x7b, 0x7b}, 0x7b);
}

TEST_P(Arithmetic, MovedElementsKeepEveryBit) {
  on_every_algorithm({.collective = Collective::broadcast, .ranks = 3, .root = 1},
                     [](Communicator& communicator, const Schedule& schedule) {
                       // A signalling NaN, infinity, a negative NaN and -0: no arithmetic touches them.
                       std::array<std::uint8_t, 4> buffer{};
                       if (communicator.rank() == 1) buffer = {0x7d, 0x7c, 0xff, 0x80};
                       const Status status = communicator.run({.collective = Collective::broadcast,
                                                               .dtype = Dtype::f8e5m2,
                                                               .root = 1,
                                                               .count = 4,
                                                               .input = buffer.data(),
                                                               .output = buffer.data(),
                                                               .is_in_place = true,
                                                               .schedule = &schedule});
                       EXPECT_TRUE(status.is_ok()) << status.message();
                       EXPECT_THAT(buffer, testing::ElementsAre(0x7d, 0x7c, 0xff, 0x80));
                     });
}

TEST_P(Arithmetic, BitsOfFloatsAreRefused) {
  on_every_algorithm({.collective = Collective::all_reduce, .ranks = 2},
                     [](Communicator& communicator, const Schedule& schedule) {
                       float in = 1, out = 0;
                       const Status status = communicator.run({.collective = Collective::all_reduce,
                                                               .op = Op::band,
                                                               .count = 1,
                                                               .input = &in,
                                                               .output = &out,
                                                               .schedule = &schedule});
                       EXPECT_EQ(status.code(), Code::invalid_argument);
                       EXPECT_THAT(status.message(), testing::HasSubstr("op band does not exist for float"));
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
using LongBlock = std::array<float, kLong>;

/// The sums on this rank of a block whose elements are all `values[rank]`.
LongBlock sums_of(Communicator& communicator, const Schedule& schedule, const std::vector<float>& values) {
  LongBlock in, out{};
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
    std::array<std::array<LongBlock, 5>, 16> of;  // [algorithm][rank], with room for more
  };
  Common<Seen> seen;
  const auto algorithms = algorithms_of(Collective::all_reduce);
  ASSERT_LE(algorithms.size(), Seen().of.size());
  on_every_algorithm({.collective = Collective::all_reduce, .ranks = 5},
                     [&](Communicator& communicator, const Schedule& schedule) {
                       const LongBlock sums = sums_of(communicator, schedule, {0.1F, 1e7F, 0.3F, -1e7F, 0.7F});
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
