// SPDX-License-Identifier: Apache-2.0
#include "harness/gate/baseline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/record/csv.h"
#include "harness/record/samples.h"
#include "suites/unit/harness/gate/evidence.h"

namespace tutti::harness::gate {
namespace {

using ::testing::HasSubstr;

Evidence evidence_against(std::vector<Row> rows, const Case& one) {
  Evidence evidence = evidence_for(one);
  static_cast<void>(Baseline(std::move(rows)).row_for(one, evidence));
  return evidence;
}

TEST(Baseline, ReadsWhatAnEarlierVersionRecorded) {
  for (const char* ending : {"csv", "json"}) {
    const auto baseline =
        Baseline::read(std::string(TUTTI_SOURCE_DIR) + "/suites/unit/harness/report/recorded/7f2ec82." + ending);
    EXPECT_TRUE(baseline.is_ok()) << baseline.status().message();
  }
}

TEST(Baseline, OneLaunchIsAsSureAsItsInterval) {
  const Case one = all_reduce_of(4096);
  Evidence evidence = evidence_for(one);
  const auto row = Baseline({row_with(one, 100)}).row_for(one, evidence);
  ASSERT_TRUE(row.has_value());
  EXPECT_EQ(row->time_median, 100);
  EXPECT_NEAR(evidence.doubt_below, std::log(100 / 99.0), 1e-12);
  EXPECT_NEAR(evidence.doubt_above, std::log(101 / 100.0), 1e-12);
  EXPECT_EQ(evidence.recorded_launches, 1);
  EXPECT_TRUE(evidence.missing.empty() && evidence.invalid.empty());
}

TEST(Baseline, LaunchesGiveTheMedianAndTheirOwnInterval) {
  const Case one = all_reduce_of(4096);
  std::vector<Row> rows;
  for (const double time_us : {90.0, 100.0, 110.0, 120.0, 95.0, 105.0}) rows.push_back(row_with(one, time_us));
  Evidence evidence = evidence_for(one);
  const auto row = Baseline(rows).row_for(one, evidence);
  ASSERT_TRUE(row.has_value());
  EXPECT_EQ(row->time_median, 102.5);
  EXPECT_EQ(row->time_ci_low, 90);
  EXPECT_EQ(row->time_ci_high, 120);
  EXPECT_EQ(evidence.recorded_launches, 6);
}

TEST(Baseline, LaunchesOfAnotherStateOfTheMachineAreLeftOut) {
  const Case one = all_reduce_of(4096);
  Row far = row_with(one, 300);
  far.line_ns = 480;
  Evidence evidence = evidence_for(one);
  EXPECT_EQ(Baseline({row_with(one, 100), far, row_with(one, 100)}).row_for(one, evidence)->time_median, 100);
  EXPECT_NEAR(evidence.doubt_above, std::log(1.01), 1e-12) << "300 us are not thought possible";
}

TEST(Baseline, WhatItDoesNotHaveIsMissing) {
  const Case one = all_reduce_of(4096);
  EXPECT_EQ(evidence_against({row_with(all_reduce_of(8), 1)}, one).missing, "the baseline does not have it");
  Row wrong = row_with(one, 100);
  wrong.verdict = Verdict::wrong;
  EXPECT_EQ(evidence_against({wrong}, one).missing, "the baseline has no right result of it");
  Row reference = row_with(one, 100);
  reference.backend = "openmpi";
  EXPECT_EQ(evidence_against({reference}, one).missing, "the baseline does not have it");
}

TEST(Baseline, WhatCannotBeComparedIsInvalid) {
  const Case one = all_reduce_of(4096);
  Case threads = one;
  threads.ranks_as = RanksAs::threads;
  threads.transport = "local";
  EXPECT_EQ(evidence_against({row_with(threads, 100)}, one).invalid,
            "the baseline has it with ranks as threads, not processes");
  Case streaming = one;
  streaming.cadence = Cadence::streaming;
  EXPECT_EQ(evidence_against({row_with(one, 100)}, streaming).invalid,
            "the baseline has it with cadence isolated, not streaming");
  EXPECT_THAT(evidence_against({row_with(one, 100, "ring"), row_with(one, 90, "two_shot")}, one).invalid,
              HasSubstr("2 algorithms (ring, two_shot)"));
}

TEST(Baseline, WhatNobodyCheckedIsInvalid) {
  const Case one = all_reduce_of(4096);
  Row unchecked = row_with(one, 100);
  unchecked.verdict = Verdict::unchecked;
  EXPECT_EQ(evidence_against({unchecked}, one).invalid, "the baseline's result of it was not verified (--check none)");
  Evidence evidence = evidence_for(one);
  ASSERT_TRUE(Baseline({unchecked, row_with(one, 200)}).row_for(one, evidence).has_value()) << "one that was";
  EXPECT_EQ(evidence.invalid, "");
  EXPECT_EQ(evidence.recorded_launches, 1);
}

TEST(Baseline, WhatWasMeasuredUnderOtherConditionsIsInvalid) {
  const Case one = all_reduce_of(4096);
  const auto invalid_with = [&](const auto& change) {
    Row row = row_with(one, 100);
    row.conditions["cache"] = "hot";
    row.conditions["sync"] = "roundtime";
    row.checked_on = "timed";
    change(row);
    return evidence_against({row}, one).invalid;
  };
  EXPECT_EQ(invalid_with([](Row&) {}), "");
  EXPECT_EQ(invalid_with([](Row& row) { row.conditions.clear(), row.checked_on = ""; }), "") << "it does not say";
  EXPECT_EQ(invalid_with([](Row& row) { row.conditions["cache"] = "cold"; }),
            "the baseline has it with cache 'cold', a gate measures with 'hot'");
  EXPECT_EQ(invalid_with([](Row& row) { row.conditions["sync"] = "library"; }),
            "the baseline has it with sync 'library', a gate measures with 'roundtime'");
  EXPECT_EQ(invalid_with([](Row& row) { row.conditions["skew"] = "50"; }),
            "the baseline has it with skew '50 us', a gate measures with 'none'");
  EXPECT_EQ(invalid_with([](Row& row) { row.conditions["overlap_calls"] = "16"; }),
            "the baseline has it with overlap_calls '16', a gate measures with 'none'");
  EXPECT_EQ(invalid_with([](Row& row) { row.checked_on = "timed; random values"; }),
            "the baseline has it with checked_on 'random values', a gate measures with 'exact values'");
  EXPECT_EQ(invalid_with([](Row& row) { row.checked_on = "every timed"; }),
            "the baseline has it with checked_on 'every', a gate measures with 'sample'");
  EXPECT_EQ(invalid_with([](Row& row) { row.conditions["hosts"] = "a:2,b:2"; }),
            "the baseline has it on other hosts: on 'a:2,b:2', here on one");
  Row cold = row_with(one, 300, "ring");
  cold.conditions["cache"] = "cold";
  Evidence evidence = evidence_for(one);
  EXPECT_EQ(Baseline({cold, row_with(one, 100)}).row_for(one, evidence)->time_median, 100) << "those that can be";
}

TEST(Baseline, TimesThatNobodyMeasuredAreDamage) {
  const auto message_of = [](std::optional<double> median, std::optional<double> low, std::optional<double> high) {
    Row row = row_with(all_reduce_of(4096), 100);
    row.time_median = median;
    row.time_ci_low = low;
    row.time_ci_high = high;
    return std::string(Baseline::from_text(csv_header() + "\n" + csv_row(row) + "\n").status().message());
  };
  EXPECT_EQ(message_of(100, 99, 101), "");
  EXPECT_EQ(message_of(100, 100, 100), "");
  EXPECT_EQ(message_of(100, {}, {}), "") << "too few samples for an interval";
  EXPECT_EQ(message_of({}, {}, {}), "") << "skipped";
  const std::string id = row_with(all_reduce_of(4096), 1).case_id;
  for (const auto& [median, low, high] : {std::tuple{100, 0, 101}, {100, -1, 101}, {100, 101, 102}, {100, 98, 99}}) {
    EXPECT_THAT(message_of(median, low, high), HasSubstr(fmt::format("damaged: of '{}' the time_median is 100", id)));
  }
  EXPECT_THAT(message_of(-100, {}, {}), HasSubstr(fmt::format("damaged: of '{}' the time_median is -100", id)));
}

TEST(Baseline, AFileWithoutTheColumnsThatItNeedsIsNone) {
  const auto message_of = [](const std::string& text) {
    return std::string(Baseline::from_text(text).status().message());
  };
  EXPECT_EQ(message_of("case,backend,algorithm,verdict,time_median\n"), "");
  EXPECT_THAT(message_of("case,algorithm,time_median\n"),
              HasSubstr("it has no column 'backend', 'verdict': this is no"));
  EXPECT_THAT(message_of(samples_header() + "\n"),
              HasSubstr("no column 'backend', 'algorithm', 'verdict', 'time_median': it looks like what `tutti run "
                        "--samples` wrote"));
}

TEST(Baseline, OfAnotherMachineIsInvalid) {
  const Machine here{.cpu_model = "A", .cores_allowed = 2};
  EXPECT_EQ(difference_of(R"({"cpu_model": "A", "cores_allowed": 2})", here), "");
  EXPECT_EQ(difference_of(R"({"cpu_model": "B", "cores_allowed": 2})", here),
            "the baseline is of another machine: 2 cores of B, here 2 of A");
  EXPECT_THAT(difference_of(R"({"cpu_model": "A", "cores_allowed": 4})", here), HasSubstr("4 cores of A, here 2"));
  EXPECT_EQ(difference_of("null", here), "") << "it does not say";
  Evidence evidence = evidence_for(all_reduce_of(8));
  EXPECT_FALSE(Baseline({row_with(all_reduce_of(8), 1)}, "another").row_for(all_reduce_of(8), evidence).has_value());
  EXPECT_EQ(evidence.invalid, "another");
}

TEST(Baseline, ACsvNamesItsMachineByAFingerprint) {
  const Case one = all_reduce_of(8);
  Row row = row_with(one, 1);
  EXPECT_FALSE(Baseline({row}, "", "0badcafe").names_machine()) << "an older file";
  const auto invalid_here = [&](const char* machine) {
    row.machine = machine;
    Evidence evidence = evidence_for(one);
    static_cast<void>(Baseline({row}, "", "0badcafe").row_for(one, evidence));
    return evidence.invalid;
  };
  EXPECT_EQ(invalid_here("0badcafe"), "");
  EXPECT_EQ(invalid_here(""), "") << "it does not say";
  EXPECT_EQ(invalid_here("12345678"),
            "the baseline is of another machine, or of another number of its cores: its fingerprint is '12345678', "
            "here '0badcafe'");
  EXPECT_TRUE(Baseline({row}, "", "0badcafe").names_machine());
  const std::string elsewhere = csv_header() + "\n" + csv_row(row) + "\n";
  Evidence evidence = evidence_for(one);
  EXPECT_FALSE(Baseline::from_text(elsewhere).value().row_for(one, evidence).has_value());
  EXPECT_THAT(evidence.invalid, HasSubstr(fingerprint_of(describe_machine())));
}

TEST(Baseline, OnHostsTheMachineOfTheGateNeedBeNoneOfThem) {
  const Case one = all_reduce_of(8);
  Row row = row_with(one, 1);
  row.machine = "12345678";
  row.conditions["hosts"] = "a:1,b:1";
  Baseline baseline({row}, "another", "0badcafe");
  baseline.set_hosts("a:1,b:1");
  Evidence evidence = evidence_for(one);
  EXPECT_TRUE(baseline.row_for(one, evidence).has_value()) << evidence.invalid;
  EXPECT_EQ(difference_of_machines("12345678", "12345678"), "");
  EXPECT_EQ(difference_of_machines("12345678", ""), "");
  EXPECT_EQ(difference_of_machines("", "0badcafe"), "");
}

}  // namespace
}  // namespace tutti::harness::gate
