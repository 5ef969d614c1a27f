// SPDX-License-Identifier: Apache-2.0
// The course of a gate on launches that are made up; also how launches are planned and paired.
#include "harness/gate/contest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/gate/baseline.h"
#include "suites/unit/harness/gate/evidence.h"

namespace tutti::harness::gate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Launches in which each case takes what `time` says.
struct Fake {
  std::function<double(GateSide, const Case&)> time = [](GateSide, const Case&) { return 100.0; };
  std::vector<GateSide> sides = {};
  std::vector<std::uint64_t> seeds = {};
  int launches_of_large = 0;

  Result<Launched> operator()(GateSide side, const CellGroup& group, std::uint64_t seed) {
    sides.push_back(side);
    seeds.push_back(seed);
    Launched launched;
    for (const Case& one : group.cases) {
      launches_of_large += one.bytes > 4096 ? 1 : 0;
      (side == GateSide::mine ? launched.mine : launched.other).push_back(row_with(one, time(side, one)));
    }
    return launched;
  }
};

const std::vector<Case>& two_sizes() {
  static const std::vector<Case> cases{all_reduce_of(4096), all_reduce_of(1 << 20)};
  return cases;
}

Contest contest_of(const std::vector<Case>& cases) {
  std::vector<Evidence> begun;
  for (const Case& one : cases) begun.push_back(evidence_for(one));
  return {cases, begun, {.names = {.other = "the other build"}}};
}

Opinion run(Contest& contest, Fake& fake, std::size_t cell) {
  const Status status = contest.run(std::ref(fake), [](const Contest::Progress&) {});
  EXPECT_TRUE(status.is_ok()) << status.message();
  return judge_finally(contest.evidence()[cell]).opinion;
}

TEST(Contest, ProgressNamesTheBlockAfterWhichCellsMayBeDecided) {
  Contest contest({all_reduce_of(4096)}, {evidence_for(all_reduce_of(4096))}, {.least_blocks = 8, .most_blocks = 20});
  Fake fake;
  fake.time = [&fake](GateSide, const Case&) { return 100.0 + 60.0 * static_cast<double>(fake.sides.size() % 7); };
  std::vector<int> looks;
  ASSERT_TRUE(contest
                  .run(std::ref(fake),
                       [&](const Contest::Progress& progress) {
                         looks.push_back(progress.look);
                         EXPECT_EQ(progress.cases.size(), progress.cells);
                       })
                  .is_ok());
  std::vector<int> expected(8, 8);
  expected.insert(expected.end(), 8, 16);
  expected.insert(expected.end(), 4, 20);
  EXPECT_EQ(looks, expected);
}

TEST(Contest, OperationsOfASampleAreThoseOfBothSidesLaunches) {
  Case streaming = all_reduce_of(64);
  streaming.cadence = Cadence::streaming;
  Evidence evidence = evidence_for(streaming);
  BlockRows rows{.mine = {row_with(streaming, 0.4)}, .other = {row_with(streaming, 0.4)}};
  rows.mine.front().operations = 500;
  rows.other.front().operations = 400;
  add_block(evidence, rows, {.other = "other"}, false);
  EXPECT_THAT(evidence.operations, ElementsAre(500, 400));
}

TEST(Contest, BlocksAreAbbaThenBaabWithOneSeedEach) {
  Contest contest = contest_of(two_sizes());
  Fake fake;
  EXPECT_EQ(run(contest, fake, 0), Opinion::same);
  ASSERT_EQ(fake.sides.size(), 32U) << "eight blocks of four launches, both sizes in one";
  using enum GateSide;
  EXPECT_THAT(std::vector(fake.sides.begin(), fake.sides.begin() + 8),
              ElementsAre(other, mine, mine, other, mine, other, other, mine));
  EXPECT_EQ(fake.seeds[0], fake.seeds[3]);
  EXPECT_NE(fake.seeds[0], fake.seeds[4]);
  EXPECT_EQ(contest.evidence()[0].log_ratios.size(), 16U) << "two pairs a block";
}

TEST(Contest, WhatDisturbedTheRowsIsNotedAndNotJudged) {
  const Case one = all_reduce_of(4096);
  const Row quiet = row_with(one, 100);
  Row loaded = quiet;
  loaded.disturbed = "load; steal";
  Row heated = quiet;
  heated.disturbed = "steal; heat";
  Evidence evidence = evidence_for(one);
  add_block(evidence, {.mine = {quiet, loaded}, .other = {heated, quiet}}, {.other = "the other build"}, false);
  EXPECT_EQ(disturbance_text(evidence), "2 of 4 rows were disturbed: load; steal; heat");
  EXPECT_EQ(evidence.log_ratios.size(), 2U);
  Evidence recorded = evidence_for(one);
  EXPECT_EQ(disturbance_text(recorded), "");
  ASSERT_TRUE(Baseline({loaded, quiet}).row_for(one, recorded).has_value());
  add_block(recorded, {.mine = {quiet}, .other = {loaded}}, {.other = "the baseline"}, false);
  EXPECT_EQ(disturbance_text(recorded), "1 of 3 rows were disturbed: load; steal") << "what is recorded counts once";
}

TEST(Contest, ALaunchThatGivesNothingEndsItsBlockAndNoOtherCells) {
  std::vector<Case> cases = two_sizes();
  cases.push_back(all_reduce_of(4096, "two_shot"));  // a group of its own
  Contest contest = contest_of(cases);
  Fake fake;
  int hangs = 0;
  const auto launch = [&](GateSide side, const CellGroup& group, std::uint64_t seed) -> Result<Launched> {
    if (side == GateSide::mine || group.cases.front().algorithm == "two_shot") return fake(side, group, seed);
    ++hangs;
    return Launched{.mine = {}, .other = {}, .failure = "the other build did not end within 1 s"};
  };
  ASSERT_TRUE(contest.run(launch, [](const Contest::Progress&) {}).is_ok());
  EXPECT_EQ(hangs, 1);
  for (const std::size_t cell : {0U, 1U}) {
    EXPECT_EQ(contest.evidence()[cell].missing, "the other build did not end within 1 s");
  }
  EXPECT_EQ(contest.evidence()[2].log_ratios.size(), 16U);
}

TEST(Contest, ARecordOfOtherMachinesIsFoundOutByTheFirstBlock) {
  for (const bool is_against_record : {true, false}) {
    const Case one = all_reduce_of(4096);
    Contest contest({one}, {evidence_for(one)},
                    {.is_abba = false, .is_against_record = is_against_record, .names = {}});
    int launches = 0;
    const auto launch = [&](GateSide, const CellGroup&, std::uint64_t) -> Result<Launched> {
      ++launches;
      Launched both{.mine = {row_with(one, 1)}, .other = {row_with(one, 1)}, .failure = {}};
      both.mine.front().machine = "0badcafe";
      both.other.front().machine = "12345678";
      return both;
    };
    ASSERT_TRUE(contest.run(launch, [](const Contest::Progress&) {}).is_ok());
    EXPECT_THAT(contest.evidence()[0].invalid,
                is_against_record ? HasSubstr("its fingerprint is '12345678', here '0badcafe'") : HasSubstr(""));
    EXPECT_EQ(contest.evidence()[0].invalid.empty(), !is_against_record);
    EXPECT_EQ(launches == 1, is_against_record);
  }
}

TEST(Contest, OnlyWhatIsSlowerIsRunAgain) {
  Contest contest = contest_of(two_sizes());
  Fake fake{.time = [](GateSide side, const Case& one) {
    return side == GateSide::mine && one.bytes > 4096 ? 110.0 : 100.0;
  }};
  EXPECT_EQ(run(contest, fake, 1), Opinion::slower);
  EXPECT_EQ(judge_finally(contest.evidence()[0]).opinion, Opinion::same);
  EXPECT_EQ(contest.evidence()[1].confirmation.size(), 16U);
  EXPECT_THAT(contest.evidence()[0].confirmation, IsEmpty());
  EXPECT_EQ(fake.sides.size(), 64U);
}

TEST(Contest, WhatIsNotConfirmedIsUndecided) {
  Contest contest = contest_of(two_sizes());
  int launches = 0;
  Fake fake{.time = [&](GateSide side, const Case& one) {
    if (one.bytes <= 4096) return 100.0;
    return side == GateSide::mine && ++launches <= 16 ? 110.0 : 100.0;
  }};
  EXPECT_EQ(run(contest, fake, 1), Opinion::undecided);
}

TEST(Contest, WhatIsOpenGetsMoreBlocksUpToFourTimesAsMany) {
  Contest contest = contest_of(two_sizes());
  int launches = 0;
  Fake fake{.time = [&](GateSide side, const Case& one) {
    const bool is_noisy = side == GateSide::mine && one.bytes > 4096;
    return is_noisy && launches++ / 2 % 3 == 0 ? 150.0 : 100.0;  // in every third block
  }};
  EXPECT_EQ(run(contest, fake, 1), Opinion::undecided);
  EXPECT_EQ(contest.evidence()[1].log_ratios.size(), 64U);
  EXPECT_EQ(contest.evidence()[0].log_ratios.size(), 16U) << "it was the same after eight blocks";
}

// After nine blocks the interval leaves the three that stand out aside.
TEST(Contest, LooksSeldomAndNotWheneverAnIntervalHappensToBeNarrow) {
  Contest contest = contest_of(two_sizes());
  int launches = 0;
  Fake fake{.time = [&](GateSide side, const Case& one) {
    return side == GateSide::mine && one.bytes > 4096 && launches++ < 6 ? 108.0 : 100.0;
  }};
  EXPECT_EQ(run(contest, fake, 1), Opinion::same);
  EXPECT_EQ(contest.evidence()[1].log_ratios.size(), 32U);
}

TEST(Contest, TheConfirmationGoesOnWhileItSaysNeither) {
  Contest contest = contest_of(two_sizes());
  int launches = 0;
  Fake fake{.time = [&](GateSide side, const Case& one) {
    if (side == GateSide::other || one.bytes <= 4096) return 100.0;
    const int block = launches++ / 2;
    return block >= 8 && block < 11 ? 104.0 : 110.0;  // the first of the confirmation
  }};
  EXPECT_EQ(run(contest, fake, 1), Opinion::slower);
  EXPECT_EQ(contest.evidence()[1].log_ratios.size(), 16U);
  EXPECT_EQ(contest.evidence()[1].confirmation.size(), 32U);
}

TEST(Contest, DriftThatIsEvenCancels) {
  Contest contest = contest_of(two_sizes());
  double time_us = 100;
  Fake fake{.time = [&](GateSide, const Case& one) { return one.bytes > 4096 ? time_us *= 1.02 : 100.0; }};
  EXPECT_EQ(run(contest, fake, 1), Opinion::same) << "each launch is 2 % slower than the one before";
}

TEST(Contest, AMissingRowSaysHowTheLaunchEnded) {
  Contest contest = contest_of(two_sizes());
  const auto launch = [](GateSide side, const CellGroup& group, std::uint64_t) -> Result<Launched> {
    Launched launched;
    for (const Case& one : group.cases) {
      if (side == GateSide::mine) launched.mine.push_back(row_with(one, 100));
      if (side == GateSide::other && one.bytes == 4096) launched.other.push_back(row_with(one, 100));
    }
    const bool is_killed = side == GateSide::other && group.cases.back().bytes > 4096;
    if (is_killed) launched.failure = "the other build ended with exit code 5: rank 1 was killed";
    return launched;
  };
  ASSERT_TRUE(contest.run(launch, [](const Contest::Progress&) {}).is_ok());
  EXPECT_EQ(judge_finally(contest.evidence()[0]).opinion, Opinion::same);
  const Judgement lost = judge_finally(contest.evidence()[1]);
  EXPECT_EQ(lost.opinion, Opinion::missing);
  EXPECT_THAT(lost.reason, HasSubstr("rank 1 was killed"));
}

TEST(Contest, AWrongResultEndsItsCellAndNamesTheSide) {
  Contest contest = contest_of(two_sizes());
  const auto launch = [](GateSide side, const CellGroup& group, std::uint64_t) -> Result<Launched> {
    Launched launched;
    for (const Case& one : group.cases) {
      Row row = row_with(one, 100);
      if (side == GateSide::mine && one.bytes > 4096) {
        row.verdict = Verdict::wrong;
        row.reason = "rank 1: output: element 7";
      }
      (side == GateSide::mine ? launched.mine : launched.other).push_back(row);
    }
    return launched;
  };
  ASSERT_TRUE(contest.run(launch, [](const Contest::Progress&) {}).is_ok());
  const Judgement judgement = judge_finally(contest.evidence()[1]);
  EXPECT_EQ(judgement.opinion, Opinion::wrong);
  EXPECT_EQ(judgement.reason, "this build: wrong: rank 1: output: element 7");
}

TEST(Contest, ALaunchThatFailsWhenAllIsMeasuredDoesNotPass) {
  Contest contest = contest_of(two_sizes());
  const auto launch = [](GateSide side, const CellGroup& group, std::uint64_t) -> Result<Launched> {
    Launched launched;
    for (const Case& one : group.cases) {
      (side == GateSide::mine ? launched.mine : launched.other).push_back(row_with(one, 100));
    }
    if (side == GateSide::mine) launched.failure = "this build ended with exit code 134: abort";
    return launched;
  };
  ASSERT_TRUE(contest.run(launch, [](const Contest::Progress&) {}).is_ok());
  for (const Evidence& evidence : contest.evidence()) {
    EXPECT_EQ(judge_finally(evidence).opinion, Opinion::missing);
    EXPECT_EQ(judge_finally(evidence).reason, "this build ended with exit code 134: abort");
  }
}

TEST(Contest, ALaunchWithoutATimeIsNoPartnerAndNoFailure) {
  Contest contest = contest_of({all_reduce_of(4096)});
  int launches = 0;
  int most_with_a_time = 31;
  const auto launch = [&](GateSide side, const CellGroup& group, std::uint64_t) -> Result<Launched> {
    Row row = row_with(group.cases.front(), 100);
    if (++launches > most_with_a_time) {
      row.time_median.reset();
      row.reason = "no time: to each of 30 samples a rank came late";
    }
    return side == GateSide::mine ? Launched{.mine = {row}} : Launched{.other = {row}};
  };
  ASSERT_TRUE(contest.run(launch, [](const Contest::Progress&) {}).is_ok());
  EXPECT_EQ(judge_finally(contest.evidence()[0]).opinion, Opinion::same);
  EXPECT_EQ(contest.evidence()[0].log_ratios.size(), 15U);
  launches = most_with_a_time = 0;
  Contest never = contest_of({all_reduce_of(4096)});
  ASSERT_TRUE(never.run(launch, [](const Contest::Progress&) {}).is_ok());
  EXPECT_EQ(judge_finally(never.evidence()[0]).opinion, Opinion::undecided);
  EXPECT_THAT(judge_finally(never.evidence()[0]).reason, HasSubstr("this build: no time: to each of 30 samples"));
}

/// Launches of one cell, each in the state that `line_ns` says; far cores take four times as long.
struct Flipping {
  std::function<double(GateSide, int launch)> line_ns;
  double slow_down = 1;
  int launches = 0;

  Result<Launched> operator()(GateSide side, const CellGroup& group, std::uint64_t) {
    const double line = line_ns(side, launches++);
    Row row = row_with(group.cases.front(), (line > 300 ? 400 : 100) * (side == GateSide::mine ? slow_down : 1));
    row.line_ns = line;
    return side == GateSide::mine ? Launched{.mine = {row}} : Launched{.other = {row}};
  }
};

TEST(Contest, LaunchesInTwoStatesOfTheMachineAreNoPairs) {
  Contest contest = contest_of({all_reduce_of(4096)});
  Flipping fake{.line_ns = [](GateSide side, int) { return side == GateSide::mine ? 62 : 85; }};
  ASSERT_TRUE(contest.run(std::ref(fake), [](const Contest::Progress&) {}).is_ok());
  EXPECT_EQ(contest.evidence()[0].log_ratios.size(), 0U);
  EXPECT_EQ(judge_finally(contest.evidence()[0]).opinion, Opinion::invalid);
  EXPECT_EQ(fake.launches, 128);
}

TEST(Contest, AMachineThatFlipsGivesPairsAcrossBlocks) {
  Contest contest = contest_of({all_reduce_of(4096)});
  // Every block sees both states, and the sides do not see them equally often.
  Flipping fake{.line_ns = [](GateSide, int launch) { return launch / 3 % 2 == 0 ? 95.0 - launch % 3 : 390.0; },
                .slow_down = 1.12};
  ASSERT_TRUE(contest.run(std::ref(fake), [](const Contest::Progress&) {}).is_ok());
  const Judgement judgement = judge_finally(contest.evidence()[0]);
  EXPECT_EQ(judgement.opinion, Opinion::slower);
  EXPECT_NEAR(*judgement.low, 1.12, 1e-9);
  EXPECT_NEAR(*judgement.high, 1.12, 1e-9);
  EXPECT_GE(contest.evidence()[0].log_ratios.size(), 14U);
}

TEST(Contest, AConfirmationOfTooFewPairsGoesOn) {
  Contest contest = contest_of({all_reduce_of(4096)});
  Flipping fake{.line_ns =
                    [](GateSide side, int launch) {
                      const bool is_in_first_blocks_of_confirmation = launch / 4 >= 8 && launch / 4 < 13;
                      return is_in_first_blocks_of_confirmation && side == GateSide::mine ? 480.0 : 100.0;
                    },
                .slow_down = 1.2};
  ASSERT_TRUE(contest.run(std::ref(fake), [](const Contest::Progress&) {}).is_ok());
  EXPECT_EQ(fake.launches, 4 * (8 + 16)) << "after eight blocks there are six pairs";
  EXPECT_EQ(judge_finally(contest.evidence()[0]).opinion, Opinion::slower);
}

// A launch that is left over from before would tell of the doubtful ones.
TEST(Contest, TheConfirmationTakesFreshLaunchesOnly) {
  Contest contest = contest_of({all_reduce_of(4096)});
  Flipping fake{.line_ns =
                    [](GateSide side, int launch) {
                      if (launch < 32 && launch % 4 == 0) return side == GateSide::mine ? 480.0 : 200.0;
                      return launch == 32 && side == GateSide::other ? 480.0 : 100.0;
                    },
                .slow_down = 1.2};
  ASSERT_TRUE(contest.run(std::ref(fake), [](const Contest::Progress&) {}).is_ok());
  EXPECT_EQ(contest.evidence()[0].waiting_other.size() + contest.evidence()[0].waiting_mine.size(), 2U)
      << "launch 32 of the other side, and one of this";
}

TEST(Contest, AnotherAlgorithmIsTold) {
  Contest contest = contest_of({all_reduce_of(4096)});
  const auto launch = [](GateSide side, const CellGroup& group, std::uint64_t) -> Result<Launched> {
    if (side == GateSide::mine) return Launched{.mine = {row_with(group.cases.front(), 100, "ring")}};
    return Launched{.other = {row_with(group.cases.front(), 100, "two_shot")}};
  };
  ASSERT_TRUE(contest.run(launch, [](const Contest::Progress&) {}).is_ok());
  const Judgement judgement = judge_finally(contest.evidence()[0]);
  EXPECT_EQ(judgement.opinion, Opinion::same);
  EXPECT_EQ(judgement.reason, "algorithm ring, of the other build two_shot");
}

TEST(Contest, AnErrorOfALaunchEndsIt) {
  Contest contest = contest_of(two_sizes());
  int launches = 0;
  const auto launch = [&](GateSide, const CellGroup&, std::uint64_t) -> Result<Launched> {
    ++launches;
    return error(Code::aborted, "interrupted");
  };
  EXPECT_EQ(contest.run(launch, [](const Contest::Progress&) {}).code(), Code::aborted);
  EXPECT_EQ(launches, 1);
}

TEST(GatePlan, CasesThatDifferInBytesShareALaunch) {
  Case barrier;
  barrier.algorithm = "auto";
  barrier.ranks = 2;
  const std::vector<Case> cases{all_reduce_of(8), barrier, all_reduce_of(4096), all_reduce_of(8, "ring")};
  const std::vector<CellGroup> groups = groups_of(cases);
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_THAT(run_arguments(groups[0]),
              ElementsAre("run", "all_reduce", "--ranks", "2", "--ranks-as", "processes", "--cadence", "isolated",
                          "--algorithms", "auto", "--dtypes", "float", "--ops", "sum", "--placement", "out",
                          "--buffers", "private", "--sizes", "8,4096"));
  EXPECT_THAT(run_arguments(groups[1]), ElementsAre("run", "barrier", "--ranks", "2", "--ranks-as", "processes",
                                                    "--cadence", "isolated", "--algorithms", "auto"));
  Case elsewhere = barrier;
  elsewhere.transport = "tcp";
  EXPECT_THAT(run_arguments({.cases = {elsewhere}}),
              ElementsAre("run", "barrier", "--ranks", "2", "--ranks-as", "processes", "--transports", "tcp",
                          "--cadence", "isolated", "--algorithms", "auto"));
  EXPECT_EQ(groups_of(std::vector{barrier, elsewhere}).size(), 2U);
  EXPECT_TRUE(is_of_case(cases[0], row_with(cases[0], 1, "one_shot").case_id)) << "auto is any of them";
  EXPECT_FALSE(is_of_case(cases[3], row_with(cases[3], 1, "one_shot").case_id));
  EXPECT_TRUE(is_of_case(cases[3], row_with(cases[3], 1, "ring").case_id));
  Case reference = cases[3];
  reference.backend = "openmpi";
  EXPECT_TRUE(is_of_case(cases[3], row_with(reference, 1, "none").case_id));
}

}  // namespace
}  // namespace tutti::harness::gate
