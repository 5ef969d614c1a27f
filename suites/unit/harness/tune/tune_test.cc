// SPDX-License-Identifier: Apache-2.0
// Which cells are measured, and what made-up blocks of their cases make of a table.
#include "harness/tune/tune.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::tune {
namespace {

using guidelines::Measured;
using guidelines::Plan;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

Sweep sweep_for(std::vector<Collective> collectives, std::vector<int> ranks, std::vector<std::int64_t> sizes) {
  Sweep sweep;
  sweep.collectives = std::move(collectives);
  sweep.ranks = std::move(ranks);
  sweep.sizes = std::move(sizes);
  sweep.backends = {"tutti"};
  return sweep;
}

Plan plan_for(const Sweep& sweep, const std::string& taken = "two_shot") {
  auto plan = plan_of(sweep, [&](const Case&) { return taken; });
  EXPECT_TRUE(plan.is_ok()) << plan.status().message();
  return std::move(plan).value();
}

std::vector<std::string> algorithms_in(const std::vector<Case>& cell) {
  std::vector<std::string> names;
  for (const Case& one : cell) names.push_back(one.algorithm);
  return names;
}

TEST(Tune, MeasuresWhatIsTakenBesideEveryOtherAlgorithm) {
  const Plan plan = plan_for(sweep_for({Collective::all_reduce}, {4}, {1024}), "ring");
  ASSERT_THAT(plan.cells, SizeIs(1));
  const std::vector<std::string> names = algorithms_in(plan.cells.front());
  EXPECT_EQ(names.front(), "ring");
  EXPECT_EQ(std::ranges::count(names, "ring"), 1);
  for (const char* name : {"one_shot", "two_shot", "halving"}) EXPECT_THAT(names, Contains(name));
  EXPECT_EQ(plan.comparisons.size() + 1, names.size());
  for (const auto& one : plan.comparisons) EXPECT_EQ(one.native.at, 0U);
}

TEST(Tune, TriesTuningsOfLargeCalls) {
  const Plan small = plan_for(sweep_for({Collective::all_reduce}, {2}, {kLeastTunedBytes / 2}));
  for (const std::string& name : algorithms_in(small.cells.front())) EXPECT_THAT(name, Not(HasSubstr("+")));
  const Plan large = plan_for(sweep_for({Collective::all_reduce}, {2}, {1 << 20}));
  for (const char* name :
       {"two_shot+plain", "two_shot+streamed", "two_shot+single_copy", "two_shot+16K", "two_shot+64K"}) {
    EXPECT_THAT(algorithms_in(large.cells.front()), Contains(name));
  }
  // A tuning that is taken already competes with none.
  const Plan tuned = plan_for(sweep_for({Collective::all_reduce}, {2}, {1 << 20}), "two_shot+128K");
  EXPECT_EQ(tuned.cells.front().front().algorithm, "two_shot+128K");
  EXPECT_THAT(algorithms_in(tuned.cells.front()), Contains("two_shot"));
}

TEST(Tune, HasACollectiveWhoseSizeHasASay) {
  EXPECT_THAT(collectives(), Contains(Collective::all_to_all));
  EXPECT_THAT(collectives(), Not(Contains(Collective::all_to_all_v)));
  EXPECT_THAT(collectives(), Not(Contains(Collective::message_rate)));
}

/// 16 blocks of a case, a few percent apart, the same for all cases.
BlockMedians blocks_of_case(const Case& one, double time_us) {
  BlockMedians medians{.case_id = case_id(one)};
  for (int round = 0; round < 16; ++round) {
    medians.of_rounds.push_back({.round = round, .median_us = time_us * (1 + 0.01 * (round % 5))});
  }
  return medians;
}

Row right_row(const Case& one, double time_us) {
  Row row = row_of(one);
  row.verdict = Verdict::ok;
  row.time_median = time_us;
  row.line_ns = 100;
  return row;
}

/// `of_others` by algorithm; what is not named takes 100 us.
Measured measured_of(const Plan& plan, const std::map<std::string, double>& of_others) {
  Measured measured;
  for (const std::vector<Case>& cell : plan.cells) {
    for (const Case& one : cell) {
      const auto named = of_others.find(one.algorithm);
      const double time_us = named == of_others.end() ? 100 : named->second;
      measured.add(case_id(cell.front()), blocks_of_case(one, time_us));
      measured.add(case_id(cell.front()), right_row(one, time_us));
    }
  }
  return measured;
}

class TuneFindings : public testing::Test {
 protected:
  [[nodiscard]] Finding finding(const Measured& first, const Measured& again) const {
    return findings_of(plan_, first, again).front();
  }
  const Plan plan_ = plan_for(sweep_for({Collective::all_reduce}, {2}, {1024}));
};

TEST_F(TuneFindings, TakeTheFastestThatIsFasterTwice) {
  const Measured fast = measured_of(plan_, {{"ring", 70}, {"one_shot", 50}});
  const Finding found = finding(fast, fast);
  EXPECT_TRUE(found.is_measured);
  EXPECT_EQ(found.chosen.algorithm, "one_shot");
  EXPECT_NEAR(found.gain->middle, 2, 1e-9);
  EXPECT_NEAR(found.gain->low, 2, 1e-9);
  EXPECT_EQ(found.chosen_us, 50);
}

TEST_F(TuneFindings, KeepWhatIsTakenWhereNothingIsFasterTwice) {
  const Measured fast = measured_of(plan_, {{"one_shot", 50}}), same = measured_of(plan_, {});
  EXPECT_EQ(finding(fast, same).chosen.algorithm, "two_shot");
  EXPECT_TRUE(finding(fast, same).is_measured);
  EXPECT_EQ(finding(same, {}).chosen.algorithm, "two_shot");
  EXPECT_TRUE(finding(same, {}).is_measured);
  const Measured near = measured_of(plan_, {{"one_shot", 98}});
  EXPECT_EQ(finding(near, near).chosen.algorithm, "two_shot");
}

TEST_F(TuneFindings, AreChosenByTheLowerEndOfBothPasses) {
  // ring is the faster one in the first pass, and the other one in the second.
  const Measured first = measured_of(plan_, {{"ring", 40}, {"one_shot", 50}});
  const Measured again = measured_of(plan_, {{"ring", 90}, {"one_shot", 60}});
  const Finding found = finding(first, again);
  EXPECT_EQ(found.chosen.algorithm, "one_shot");
  EXPECT_NEAR(found.gain->low, 100.0 / 60, 1e-9);
  EXPECT_NEAR(found.gain->high, 2, 1e-9);
}

TEST_F(TuneFindings, AreNotMeasuredWithoutAnInterval) {
  Measured few = measured_of(plan_, {});
  BlockMedians medians = blocks_of_case(plan_.cells.front()[1], 50);
  medians.of_rounds.resize(4);
  few.add(case_id(plan_.cells.front().front()), medians);
  EXPECT_FALSE(finding(few, {}).is_measured);
  EXPECT_THAT(finding(few, {}).lack, HasSubstr("too few for an interval"));
  EXPECT_FALSE(finding({}, {}).is_measured);
}

TEST_F(TuneFindings, LeaveOutWhatCannotRun) {
  Measured measured = measured_of(plan_, {});
  Row row = right_row(plan_.cells.front()[1], 1);
  row.verdict = Verdict::skipped;
  measured.add(case_id(plan_.cells.front().front()), row);
  EXPECT_TRUE(finding(measured, {}).is_measured);
}

TEST(TuneRows, CoverAllSizesAndTheRanksSinceTheNextFewer) {
  const Plan plan = plan_for(sweep_for({Collective::all_reduce}, {2, 4}, {64, 1024, 16384}));
  const Measured measured = measured_of(plan, {{"one_shot", 50}});
  const std::vector<Finding> findings = findings_of(plan, measured, measured);
  const std::vector<TableRow> rows = rows_of(plan, findings, {.ranks = {2, 4}, .cores = 2, .record = "rows.csv"});
  ASSERT_THAT(rows, SizeIs(6));
  EXPECT_EQ(rows[0].least_bytes, 0);
  EXPECT_EQ(rows[0].most_bytes, 256);  // the geometric mean of 64 and 1024
  EXPECT_EQ(rows[1].least_bytes, 257);
  EXPECT_EQ(rows[1].most_bytes, 4096);
  EXPECT_EQ(rows[2].least_bytes, 4097);
  EXPECT_EQ(rows[2].most_bytes, -1);
  EXPECT_EQ(rows[0].least_ranks, 2);
  EXPECT_EQ(rows[0].most_ranks, 2);
  EXPECT_EQ(rows[0].is_crowded, false);
  EXPECT_EQ(rows[3].least_ranks, 3);
  EXPECT_EQ(rows[3].most_ranks, 4);
  EXPECT_EQ(rows[3].is_crowded, true);
  EXPECT_EQ(rows[0].algorithm->name, "one_shot");
  EXPECT_EQ(rows[0].otherwise, "two_shot");
  EXPECT_EQ(rows[0].gain, "2.000");
  EXPECT_EQ(rows[0].record, "rows.csv");
  // The text is a table that takes what was found.
  const auto table = SelectionTable::parse("t", table_text(rows, {}));
  ASSERT_TRUE(table.is_ok()) << table.status().message();
  const Chosen chosen = choose({.problem = {.collective = Collective::all_reduce, .ranks = 3},
                                .cores = 2,
                                .bytes = 1 << 30,
                                .table = &table.value()});
  EXPECT_EQ(chosen.algorithm->name, "one_shot");
  EXPECT_TRUE(chosen.is_measured);
}

TEST(TuneRows, AreNotOfWhatWasNotMeasured) {
  const Plan plan = plan_for(sweep_for({Collective::all_reduce}, {2}, {64, 1024}));
  EXPECT_THAT(rows_of(plan, findings_of(plan, {}, {}), {.ranks = {2}, .cores = 2}), IsEmpty());
}

TEST(TuneFits, SayOfEachCellTheGravest) {
  const Plan plan = plan_for(sweep_for({Collective::all_reduce}, {2}, {64, 1024}));
  const Measured same = measured_of(plan, {}), fast = measured_of(plan, {{"ring", 50}, {"one_shot", 60}});
  for (const auto& cell : fits_of(plan, same, {})) EXPECT_EQ(cell.judgement.opinion, Opinion::same);
  const auto cells = fits_of(plan, fast, fast);
  ASSERT_THAT(cells, SizeIs(2));
  for (const auto& cell : cells) {
    EXPECT_EQ(cell.judgement.opinion, Opinion::slower);
    EXPECT_THAT(cell.evidence.cell, HasSubstr("all_reduce private: two_shot <= ring"));
  }
}

}  // namespace
}  // namespace tutti::harness::tune
