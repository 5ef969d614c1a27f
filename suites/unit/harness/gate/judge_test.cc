// SPDX-License-Identifier: Apache-2.0
#include "harness/gate/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/unit/harness/gate/evidence.h"

namespace tutti::harness::gate {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;

Opinion opinion_of(const Evidence& evidence) { return judge(evidence).opinion; }

TEST(GateFloor, IsFivePercentFromAMebibyteOnTenBelowAndHalfAMicrosecondAtLeast) {
  EXPECT_DOUBLE_EQ(gate_floor(kMebibyte, 1000), 0.05);
  EXPECT_DOUBLE_EQ(gate_floor(kMebibyte - 1, 1000), 0.10);
  EXPECT_DOUBLE_EQ(gate_floor(8, 0.25), 2.0);
  EXPECT_DOUBLE_EQ(gate_floor(0, 4), 0.125);
  EXPECT_DOUBLE_EQ(gate_floor(8, 0.25, 4), 0.5) << "operations of a sample share the half microsecond";
  EXPECT_DOUBLE_EQ(gate_floor(8, 0.25, 400), 0.10);
}

TEST(Judge, IdenticalBuildsAreTheSame) {
  EXPECT_EQ(opinion_of(evidence_around(1, 0)), Opinion::same);
  EXPECT_EQ(opinion_of(evidence_around(1, 0.03)), Opinion::same);
  EXPECT_TRUE(judge(evidence_around(1, 0.03)).reason.empty());
}

TEST(Judge, TenPercentMoreOrLessIsSeenAtAMebibyte) {
  EXPECT_EQ(opinion_of(evidence_around(1.1, 0.02)), Opinion::slower);
  EXPECT_EQ(opinion_of(evidence_around(1 / 1.1, 0.02)), Opinion::faster);
  const Judgement judgement = judge(evidence_around(1.1, 0.02));
  EXPECT_NEAR(*judgement.ratio, 1.1, 1e-9);
  EXPECT_NEAR(*judgement.low, 1.1 * std::exp(-0.02), 1e-9) << "of eight pairs: from the least";
  EXPECT_NEAR(*judgement.high, 1.1 * std::exp(0.02), 1e-9) << "to the largest";
  EXPECT_DOUBLE_EQ(*judgement.floor, 0.05);
}

TEST(Judge, BelowTheFloorNothingIsADifference) {
  EXPECT_EQ(opinion_of(evidence_around(1.04, 0.005)), Opinion::same);
  EXPECT_EQ(opinion_of(evidence_around(1.08, 0.005, 64 << 10)), Opinion::same) << "10 % below 1 MiB";
  EXPECT_EQ(opinion_of(evidence_around(1.1, 0.01, 8, 2.1)), Opinion::same) << "a floor of 24 %";
  EXPECT_EQ(opinion_of(evidence_around(4.0, 0.01, 8, 0.2)), Opinion::slower) << "0.6 us more";
  EXPECT_EQ(opinion_of(evidence_around(0.3, 0.01, 8, 0.8)), Opinion::faster) << "0.56 us less";
}

TEST(Judge, WhereTheFloorIsMoreThanAQuarterOfTheTimeNothingIsTheSame) {
  const Judgement judgement = judge(evidence_around(0.85 / 0.37, 0.01, 8, 0.37));
  EXPECT_EQ(judgement.opinion, Opinion::too_short);
  EXPECT_THAT(judgement.reason, HasSubstr("the floor, 0.500 us, is more than 25 % of the time"));
  EXPECT_NEAR(*judgement.floor, 0.5 / 0.37, 1e-9);
  EXPECT_EQ(opinion_of(evidence_around(1, 0, 8, 1.9)), Opinion::too_short);
  EXPECT_EQ(opinion_of(evidence_around(2.0, 0.01, 8, 0.2)), Opinion::too_short) << "0.2 us more";
  EXPECT_EQ(opinion_of(evidence_around(0.1, 0.01, 8, 0.5)), Opinion::too_short) << "it cannot gain half a microsecond";
  EXPECT_EQ(opinion_of(evidence_around(0.4, 0.01, 8, 0.8)), Opinion::too_short) << "0.48 us less";
  EXPECT_EQ(opinion_of(evidence_around(3.4, 0.1, 8, 0.2)), Opinion::undecided) << "it may be slower by more than that";
  EXPECT_FALSE(is_open(evidence_around(1, 0, 8, 0.37))) << "more blocks make no time longer";
  EXPECT_EQ(judge_finally(evidence_around(1, 0, 8, 0.37)).opinion, Opinion::too_short);
}

TEST(Judge, OperationsOfASampleShareTheFloor) {
  Evidence evidence = evidence_around(0.85 / 0.37, 0.01, 8, 0.37);
  evidence.operations = {400};
  EXPECT_EQ(opinion_of(evidence), Opinion::slower);
  evidence = evidence_around(1.05, 0.01, 8, 0.37);
  evidence.operations = {400};
  EXPECT_EQ(opinion_of(evidence), Opinion::same) << "10 % below 1 MiB";
  evidence.operations = {400, 4, 4};
  EXPECT_EQ(opinion_of(evidence), Opinion::too_short);
  evidence.operations = {400, 4, 400};
  EXPECT_EQ(opinion_of(evidence), Opinion::same) << "one launch was disturbed";
  evidence.operations = {0};  // of a damaged file
  EXPECT_NEAR(*judge(evidence).floor, 0.5 / 0.37, 1e-9);
  evidence = evidence_around(0.8, 0.01, 8, 0.37);
  evidence.operations = {400};
  EXPECT_EQ(opinion_of(evidence), Opinion::faster);
}

TEST(Judge, WhatIsTooNoisyIsUndecided) {
  const Judgement judgement = judge(evidence_around(1.1, 0.2));
  EXPECT_EQ(judgement.opinion, Opinion::undecided);
  EXPECT_THAT(judgement.reason, HasSubstr("crosses the floor of 5.0 %"));
  EXPECT_EQ(opinion_of(evidence_around(1, 0.1)), Opinion::undecided) << "not known to be the same";
}

TEST(Judge, TooFewPairsAreUndecidedAndLaunchesWithoutAPartnerInvalid) {
  Evidence evidence = evidence_around(1, 0);
  evidence.log_ratios.resize(7);
  EXPECT_EQ(opinion_of(evidence), Opinion::undecided);
  evidence.waiting_mine.resize(14);
  EXPECT_EQ(opinion_of(evidence), Opinion::undecided);
  evidence.waiting_other.resize(1);
  EXPECT_EQ(opinion_of(evidence), Opinion::invalid);
  EXPECT_THAT(judge(evidence).reason, HasSubstr("15 of 29 launches saw a state of the machine"));
}

TEST(Judge, WrongOutranksAllAndNumbersStayBesideIt) {
  Evidence evidence = evidence_around(1.2, 0.01);
  evidence.invalid = "another machine";
  EXPECT_EQ(opinion_of(evidence), Opinion::invalid);
  evidence.missing = "no row of it";
  EXPECT_EQ(opinion_of(evidence), Opinion::missing);
  evidence.counters = "messages 14, was 12";
  EXPECT_EQ(opinion_of(evidence), Opinion::slower);
  evidence.wrong = "rank 1: output";
  const Judgement judgement = judge(evidence);
  EXPECT_EQ(judgement.opinion, Opinion::wrong);
  EXPECT_EQ(judgement.reason, "rank 1: output");
  EXPECT_TRUE(judgement.ratio.has_value());
  EXPECT_EQ(judge_finally(evidence).opinion, Opinion::wrong);
}

TEST(Judge, TheDoubtOfARecordedSideWidensTheInterval) {
  Evidence evidence = evidence_around(1.1, 0.01);
  evidence.doubt_above = 0.05;  // it may well have been 5 % slower than its median says
  EXPECT_EQ(opinion_of(evidence), Opinion::undecided);
  evidence = evidence_around(0.9, 0.01);
  evidence.doubt_above = 0.05;
  EXPECT_EQ(opinion_of(evidence), Opinion::faster);
  evidence.doubt_below = 0.09;
  EXPECT_EQ(opinion_of(evidence), Opinion::undecided);
}

TEST(Judge, ARecordedSideOfFewLaunchesIsAsFarFromTheTruthAsOursMayBe) {
  Evidence evidence = evidence_around(1.1, 0.01);
  evidence.this_us.front() *= 0.85;
  EXPECT_EQ(opinion_of(evidence), Opinion::slower) << "what is measured here has an interval of its own";
  evidence.recorded_launches = 5;
  EXPECT_EQ(opinion_of(evidence), Opinion::undecided);
  evidence.recorded_launches = 6;
  EXPECT_EQ(opinion_of(evidence), Opinion::slower);
  evidence = evidence_around(0.9, 0.01);
  evidence.this_us.front() *= 0.85;
  evidence.recorded_launches = 1;
  EXPECT_EQ(opinion_of(evidence), Opinion::undecided);
}

TEST(JudgeFinally, SlowerIsWhatFreshLaunchesConfirm) {
  Evidence evidence = evidence_around(1.1, 0.02);
  EXPECT_EQ(judge_finally(evidence).opinion, Opinion::undecided);
  evidence.confirmation = log_ratios_around(1.0, 0.02);
  const Judgement refuted = judge_finally(evidence);
  EXPECT_EQ(refuted.opinion, Opinion::undecided);
  EXPECT_THAT(refuted.reason, HasSubstr("slower in 8 pairs, and not in 8 more"));
  evidence.confirmation = log_ratios_around(1.12, 0.02);
  const Judgement confirmed = judge_finally(evidence);
  EXPECT_EQ(confirmed.opinion, Opinion::slower);
  EXPECT_THAT(confirmed.reason, HasSubstr("ratio 1.120"));
}

TEST(JudgeFinally, ACounterNeedsNoConfirmation) {
  Evidence evidence = evidence_around(1, 0.01);
  evidence.counters = "messages 14, was 12";
  EXPECT_EQ(judge_finally(evidence).opinion, Opinion::slower);
}

TEST(JudgeFinally, TheNoteStandsBehindEveryReason) {
  const auto reason_of = [](Evidence evidence) {
    evidence.note = "algorithm ring, of base direct";
    return judge_finally(evidence).reason;
  };
  const std::string end = "; algorithm ring, of base direct";
  EXPECT_EQ(reason_of(evidence_around(1, 0.01)), end.substr(2));
  EXPECT_EQ(reason_of(evidence_around(0.8, 0.01)), end.substr(2));
  EXPECT_EQ(reason_of(evidence_around(1.1, 0.2)), "the interval of 8 pairs crosses the floor of 5.0 %" + end);
  Evidence slower = evidence_around(1.1, 0.02);
  EXPECT_EQ(reason_of(slower), "slower in 8 pairs, not confirmed: 0 more" + end);
  slower.confirmation = log_ratios_around(1.12, 0.02);
  EXPECT_EQ(reason_of(slower), "confirmed by 8 pairs of fresh launches, ratio 1.120" + end);
  slower.missing = "no row of it";
  EXPECT_EQ(reason_of(slower), "no row of it" + end);
  slower.note = "another";
  EXPECT_EQ(judge_unfinished(slower, "interrupted").reason, "no row of it; another");
  EXPECT_THAT(reason_of(evidence_for(all_reduce_of(8))), HasSubstr("0 pairs of launches, too few"));
  EXPECT_THAT(reason_of(evidence_for(all_reduce_of(8))), EndsWith(end));
}

TEST(JudgeUnfinished, OnlyWhatNeedsNoMoreTimesIsJudged) {
  for (const double ratio : {0.5, 1.0, 2.0}) {
    Evidence evidence = evidence_around(ratio, 0.01);
    evidence.confirmation = log_ratios_around(ratio, 0.01);
    const Judgement judgement = judge_unfinished(evidence, "interrupted in block 7");
    EXPECT_EQ(judgement.opinion, Opinion::undecided) << ratio;
    EXPECT_EQ(judgement.reason, "interrupted in block 7");
    EXPECT_NEAR(*judgement.ratio, ratio, 1e-9) << "as far as it was measured";
  }
  const auto opinion_with = [](std::string Evidence::*reason) {
    Evidence evidence = evidence_around(1, 0.01);
    evidence.*reason = "why";
    EXPECT_EQ(judge_unfinished(evidence, "interrupted").reason, "why");
    return judge_unfinished(evidence, "interrupted").opinion;
  };
  EXPECT_EQ(opinion_with(&Evidence::wrong), Opinion::wrong);
  EXPECT_EQ(opinion_with(&Evidence::counters), Opinion::slower);
  EXPECT_EQ(opinion_with(&Evidence::missing), Opinion::missing);
  EXPECT_EQ(opinion_with(&Evidence::invalid), Opinion::invalid);
}

TEST(IsOpen, WhileMoreBlocksMayTell) {
  EXPECT_FALSE(is_open(evidence_around(1, 0)));
  EXPECT_FALSE(is_open(evidence_around(1.1, 0.02)));
  EXPECT_TRUE(is_open(evidence_around(1.1, 0.2)));
  EXPECT_TRUE(is_open(evidence_for(all_reduce_of(8))));
  Evidence wrong = evidence_around(1.1, 0.2);
  wrong.wrong = "x";
  EXPECT_FALSE(is_open(wrong));
}

}  // namespace
}  // namespace tutti::harness::gate
