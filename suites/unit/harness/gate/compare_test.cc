// SPDX-License-Identifier: Apache-2.0
#include "harness/gate/compare.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/unit/harness/gate/evidence.h"

namespace tutti::harness::gate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::int64_t kCompared = std::int64_t{1} << 20;  ///< bytes: the floor is 5 %
/// Six launches, 10 % apart. Of the 36 differences to six like them, the third from either end bound 99 %.
const std::vector<double> kTimes{100, 102, 104, 106, 108, 110};
constexpr double kLow = 102.0 / 110;
constexpr double kHigh = 110.0 / 102;
/// Six launches within 1 %: no floor is as narrow.
const std::vector<double> kSteady{100, 100.2, 100.4, 100.6, 100.8, 101};

std::vector<double> times(double factor, std::vector<double> of) {
  for (double& time : of) time *= factor;
  return of;
}

/// A launch for each time, in microseconds.
std::vector<Row> rows_with(const std::vector<double>& medians, std::int64_t bytes = kCompared,
                           const char* algorithm = "two_shot", const std::string& starter = "spawn") {
  std::vector<Row> rows;
  for (const double median : medians) {
    rows.push_back(row_with(all_reduce_of(bytes), median, algorithm));
    rows.back().launch = static_cast<std::int64_t>(rows.size());
    rows.back().starter = starter;
  }
  return rows;
}

void append(std::vector<Row>& rows, const std::vector<Row>& more) { rows.insert(rows.end(), more.begin(), more.end()); }

std::vector<GateCell> compared(const std::vector<Row>& mine, const std::vector<Row>& other) {
  return compare_results({.name = "b.csv", .rows = mine}, {.name = "a.csv", .rows = other}).cells;
}

Judgement judgement_of(const std::vector<Row>& mine, const std::vector<Row>& other) {
  const std::vector<GateCell> cells = compared(mine, other);
  EXPECT_EQ(cells.size(), 1u);
  return cells.empty() ? Judgement{} : cells.front().judgement;
}

/// Of six launches on either side, of which one of this side is spoilt.
Judgement with_one_row(const std::function<void(Row&)>& spoil) {
  std::vector<Row> mine = rows_with(kTimes);
  spoil(mine[2]);
  return judgement_of(mine, rows_with(kTimes));
}

std::vector<std::string> names_of(const std::vector<GateCell>& cells) {
  std::vector<std::string> names;
  for (const GateCell& cell : cells) names.push_back(cell.evidence.cell);
  return names;
}

TEST(Compare, ALongerTimeIsSlowerAndAShorterOneFaster) {
  const Judgement slower = judgement_of(rows_with(times(1.2, kTimes)), rows_with(kTimes));
  EXPECT_EQ(slower.opinion, Opinion::slower);
  EXPECT_NEAR(*slower.ratio, 1.2, 1e-9);
  EXPECT_NEAR(*slower.low, 1.2 * kLow, 1e-9);
  EXPECT_NEAR(*slower.high, 1.2 * kHigh, 1e-9);
  EXPECT_DOUBLE_EQ(*slower.floor, 0.05);
  EXPECT_EQ(slower.reason, "");

  const Judgement faster = judgement_of(rows_with(kTimes), rows_with(times(1.2, kTimes)));
  EXPECT_EQ(faster.opinion, Opinion::faster);
  EXPECT_NEAR(*faster.ratio, 1 / 1.2, 1e-9);
  EXPECT_NEAR(*faster.high, kHigh / 1.2, 1e-9);
}

TEST(Compare, WhatLiesWithinTheFloorIsTheSame) {
  EXPECT_EQ(judgement_of(rows_with(times(1.03, kSteady)), rows_with(kSteady)).opinion, Opinion::same);
  EXPECT_EQ(judgement_of(rows_with(times(1.07, kSteady)), rows_with(kSteady)).opinion, Opinion::slower);
  EXPECT_EQ(judgement_of(rows_with(times(1.07, kSteady), 4096), rows_with(kSteady, 4096)).opinion, Opinion::same)
      << "10 % below 1 MiB";
}

TEST(Compare, AnIntervalAcrossTheFloorIsUndecided) {
  const Judgement judgement = judgement_of(rows_with(times(1.05, kTimes)), rows_with(kTimes));
  EXPECT_EQ(judgement.opinion, Opinion::undecided);
  EXPECT_EQ(judgement.reason, "the interval of 6 and 6 launches crosses the floor of 5.0 %");
}

TEST(Compare, FourLaunchesDecideNothingHoweverFarApart) {
  const Judgement judgement = judgement_of(rows_with({200, 200, 200, 200}), rows_with({100, 100, 100, 100}));
  EXPECT_EQ(judgement.opinion, Opinion::undecided);
  EXPECT_NEAR(*judgement.ratio, 2.0, 1e-9);
  EXPECT_FALSE(judgement.low);
  EXPECT_EQ(judgement.reason,
            "4 launches against 4: too few for an interval of 99 %; `tutti run --launches 6` gives enough");
}

TEST(Compare, WhereTheFloorIsMostOfTheTimeItSaysSo) {
  const Judgement judgement = judgement_of(rows_with(times(0.01, kSteady), 8), rows_with(times(0.01, kSteady), 8));
  EXPECT_EQ(judgement.opinion, Opinion::undecided);
  EXPECT_THAT(judgement.reason, StartsWith("too short to be judged: the floor, 0.500 us, is more than 25 %"));
  std::vector<Row> mine = rows_with(times(0.01, kSteady), 8);
  for (Row& row : mine) row.operations = 400;
  EXPECT_EQ(judgement_of(mine, rows_with(times(0.01, kSteady), 8)).opinion, Opinion::same)
      << "operations of a sample share the half microsecond";
}

TEST(Compare, AMeasurementIsTheSameAsItselfHoweverFewItsLaunches) {
  std::vector<Row> rows = rows_with({100, 150});
  for (Row& row : rows) row.timestamp = "2026-01-01T00:00:00Z";
  const Judgement judgement = judgement_of(rows, rows);
  EXPECT_EQ(judgement.opinion, Opinion::same);
  EXPECT_EQ(judgement.reason, "it is the same measurement");
  std::vector<Row> later = rows;
  later[1].timestamp = "2026-01-01T00:00:01Z";
  EXPECT_EQ(judgement_of(later, rows).opinion, Opinion::undecided);
  for (Row& row : rows) row.timestamp.clear();
  EXPECT_EQ(judgement_of(rows, rows).opinion, Opinion::undecided) << "rows without a time may be of two measurements";
}

TEST(Compare, CellsAreMatchedByCaseAndStarter) {
  std::vector<Row> mine = rows_with(times(1.2, kTimes), kCompared, "two_shot", "openmpi");
  append(mine, rows_with(kSteady));
  std::vector<Row> other = rows_with(kSteady);
  append(other, rows_with(kTimes, kCompared, "two_shot", "openmpi"));
  const std::vector<GateCell> cells = compared(mine, other);
  ASSERT_EQ(cells.size(), 2u);
  EXPECT_EQ(names_of(cells)[1], names_of(cells)[0] + " under openmpi");
  EXPECT_EQ(names_of(cells)[0], mine.back().case_id);
  EXPECT_EQ(cells[0].judgement.opinion, Opinion::same);
  EXPECT_EQ(cells[1].judgement.opinion, Opinion::slower);
}

TEST(Compare, CellsStandInTheOrderOfTheOtherSideAndWhatItHasNotLast) {
  std::vector<Row> mine = rows_with(kSteady, 8);
  append(mine, rows_with(kSteady, 64));
  append(mine, rows_with(kSteady, 512));
  std::vector<Row> other = rows_with(kSteady, 512);
  append(other, rows_with(kSteady, 64));
  append(other, rows_with(kSteady, 4096));
  std::vector<std::int64_t> bytes;
  for (const GateCell& cell : compared(mine, other)) bytes.push_back(cell.evidence.bytes);
  EXPECT_THAT(bytes, ElementsAre(512, 64, 4096, 8));
}

TEST(Compare, WhatASideHasNotIsNotComparable) {
  std::vector<Row> mine = rows_with(kSteady, 8);
  const std::vector<GateCell> cells = compared(mine, rows_with(kSteady, 64));
  ASSERT_EQ(cells.size(), 2u);
  EXPECT_EQ(cells[0].judgement.opinion, Opinion::invalid);
  EXPECT_EQ(cells[0].judgement.reason, "'b.csv' does not have it");
  EXPECT_EQ(cells[1].judgement.opinion, Opinion::invalid);
  EXPECT_EQ(cells[1].judgement.reason, "'a.csv' does not have it");
}

TEST(Compare, OneRowThatIsNotRightSpoilsItsCell) {
  const auto expect = [](const std::function<void(Row&)>& spoil, const std::string& reason) {
    const Judgement judgement = with_one_row(spoil);
    EXPECT_EQ(judgement.opinion, Opinion::invalid) << reason;
    EXPECT_EQ(judgement.reason, reason);
    EXPECT_FALSE(judgement.ratio);
  };
  expect(
      [](Row& row) {
        row.verdict = Verdict::wrong;
        row.reason = "rank 1 differs";
      },
      "'b.csv': wrong: rank 1 differs");
  expect([](Row& row) { row.verdict = Verdict::unchecked; }, "'b.csv': the result was not verified");
  expect([](Row& row) { row.verdict = Verdict::skipped; }, "'b.csv': skipped");
  expect([](Row& row) { row.verdict = Verdict::error; }, "'b.csv': error");
}

TEST(Compare, ALaunchWithoutATimeIsLeftOut) {
  for (const double time : {-1.0, 0.0}) {
    const Judgement judgement = with_one_row([time](Row& row) {
      row.time_median = time;
      if (time < 0) row.time_median.reset();
    });
    EXPECT_NE(judgement.opinion, Opinion::invalid);
    EXPECT_THAT(judgement.reason, HasSubstr("5 and 6 launches"));
  }
}

TEST(Compare, ALaunchThatOthersDisturbedIsLeftOut) {
  for (const char* const what : {"load", "steal; switches"}) {
    const Judgement judgement = with_one_row([what](Row& row) { row.disturbed = what; });
    EXPECT_THAT(judgement.reason, HasSubstr("5 and 6 launches")) << what;
  }
  const Judgement other = with_one_row([](Row& row) { row.disturbed = "switches"; });
  EXPECT_THAT(other.reason, HasSubstr("6 and 6 launches"));
}

TEST(Compare, OtherConditionsAreNotComparable) {
  const Judgement cold = with_one_row([](Row& row) { row.conditions["cache"] = "cold"; });
  EXPECT_EQ(cold.opinion, Opinion::invalid);
  EXPECT_EQ(cold.reason, "it was measured under usual conditions, and under cache cold");
  const Judgement grouped = with_one_row([](Row& row) { row.grouped = 8; });
  EXPECT_EQ(grouped.opinion, Opinion::invalid);
  EXPECT_EQ(grouped.reason, "it was measured under usual conditions, and under groups of 8 operations");
  const Judgement hot = with_one_row([](Row& row) { row.conditions["cache"] = "hot"; });
  EXPECT_NE(hot.opinion, Opinion::invalid) << "which is as usual";
  std::vector<Row> mine = rows_with(kSteady), other = rows_with(kSteady);
  for (std::vector<Row>* side : {&mine, &other}) {
    for (Row& row : *side) row.conditions["cache"] = "cold";
  }
  EXPECT_EQ(judgement_of(mine, other).opinion, Opinion::same);
}

TEST(Compare, AnotherStateOfTheMachineIsNotComparable) {
  std::vector<Row> mine = rows_with(kSteady);
  for (Row& row : mine) row.line_ns = 500;
  const Judgement judgement = judgement_of(mine, rows_with(kSteady));
  EXPECT_EQ(judgement.opinion, Opinion::invalid);
  EXPECT_THAT(judgement.reason, HasSubstr("the round trip of a cache line took 100 ns and 500 ns"));
}

TEST(Compare, OnlyLaunchesOfTheStateThatBothSawMostAreCompared) {
  std::vector<Row> mine = rows_with(times(1.2, kTimes));
  append(mine, rows_with({900, 900}));
  mine[6].line_ns = mine[7].line_ns = 500;
  std::vector<Row> other = rows_with({10});
  other[0].line_ns = 500;
  append(other, rows_with(kTimes));
  const std::vector<GateCell> cells = compared(mine, other);
  ASSERT_EQ(cells.size(), 1u);
  EXPECT_EQ(cells[0].judgement.opinion, Opinion::slower);
  EXPECT_NEAR(*cells[0].judgement.ratio, 1.2, 1e-9);
  EXPECT_EQ(cells[0].evidence.this_us, times(1.2, kTimes));
  EXPECT_EQ(cells[0].evidence.other_us, kTimes);
  mine.erase(mine.begin(), mine.begin() + 2);
  EXPECT_THAT(judgement_of(mine, other).reason, Not(HasSubstr("one state")));
  mine.erase(mine.begin());
  EXPECT_THAT(judgement_of(mine, other).reason,
              HasSubstr("3 launches against 6 that others did not disturb, in one state of the machine: too few for"));
}

TEST(Compare, LaunchesThatOthersDisturbedDoNotCount) {
  std::vector<Row> mine = rows_with(kSteady), other = rows_with(kSteady);
  append(mine, rows_with({900, 900, 900, 900, 900, 900}));
  append(other, rows_with({10}));
  for (std::size_t i = 6; i < mine.size(); ++i) mine[i].disturbed = i % 2 == 0 ? "load" : "switches; steal";
  other[6].disturbed = "load; switches";
  const std::vector<GateCell> cells = compared(mine, other);
  ASSERT_EQ(cells.size(), 1u);
  EXPECT_EQ(cells[0].judgement.opinion, Opinion::same);
  EXPECT_EQ(cells[0].evidence.this_us, kSteady);
  EXPECT_EQ(cells[0].evidence.other_us, kSteady);
  for (Row& row : mine) row.disturbed = "switches";  // by ranks of the run itself
  EXPECT_EQ(compared(mine, other)[0].evidence.this_us.size(), 12u);
}

TEST(Compare, WhereOthersDisturbedEveryLaunchOfASideNothingIsDecided) {
  std::vector<Row> mine = rows_with(times(2, kSteady));
  for (Row& row : mine) row.disturbed = "load";
  const Judgement judgement = judgement_of(mine, rows_with(kSteady));
  EXPECT_EQ(judgement.opinion, Opinion::undecided);
  EXPECT_EQ(judgement.reason, "no launch of 'b.csv' was without others on its cores: what differs may be theirs");
  EXPECT_THAT(judgement_of(rows_with(kSteady), mine).reason, StartsWith("no launch of 'a.csv'"));
  for (Row& row : mine) row.timestamp = "2026-01-01T00:00:00Z";
  EXPECT_EQ(judgement_of(mine, mine).opinion, Opinion::same) << "it is the same measurement";
}

TEST(Compare, WhereAutoTookAnotherAlgorithmTheCellIsOfBoth) {
  const std::vector<GateCell> cells = compared(rows_with(kSteady, kCompared, "ring"), rows_with(kSteady));
  ASSERT_EQ(cells.size(), 1u);
  EXPECT_EQ(cells[0].judgement.opinion, Opinion::same);
  EXPECT_EQ(cells[0].judgement.reason, "algorithm ring, of the other two_shot");
  EXPECT_THAT(cells[0].evidence.cell, StartsWith("all_reduce/tutti/"));
}

TEST(Compare, SeveralAlgorithmsOfASideAreCellsOfTheirOwn) {
  std::vector<Row> mine = rows_with(times(1.2, kTimes), kCompared, "ring");
  append(mine, rows_with(kSteady));
  std::vector<Row> other = rows_with(kSteady);
  append(other, rows_with(kTimes, kCompared, "ring"));
  const std::vector<GateCell> cells = compared(mine, other);
  ASSERT_EQ(cells.size(), 2u);
  EXPECT_THAT(cells[0].evidence.cell, StartsWith("all_reduce/tutti.two_shot/"));
  EXPECT_EQ(cells[0].judgement.opinion, Opinion::same);
  EXPECT_THAT(cells[1].evidence.cell, StartsWith("all_reduce/tutti.ring/"));
  EXPECT_EQ(cells[1].judgement.opinion, Opinion::slower);
}

TEST(Compare, RowsThatSomethingDisturbedAreCountedOnBothSides) {
  std::vector<Row> mine = rows_with(kSteady), other = rows_with(kSteady);
  mine[0].disturbed = "load";
  other[3].disturbed = "steal";
  const std::vector<GateCell> cells = compared(mine, other);
  ASSERT_EQ(cells.size(), 1u);
  EXPECT_EQ(disturbance_text(cells[0].evidence), "2 of 12 rows were disturbed: steal; load");
}

}  // namespace
}  // namespace tutti::harness::gate
