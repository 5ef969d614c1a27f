// SPDX-License-Identifier: Apache-2.0
// Which pairs are compared, and what made-up blocks of both sides say.
#include "harness/guidelines/guidelines.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/cases/compositions.h"

namespace tutti::harness::guidelines {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

Sweep sweep_for(std::vector<Collective> collectives, std::vector<int> ranks, std::vector<std::int64_t> sizes) {
  Sweep sweep;
  sweep.collectives = std::move(collectives);
  sweep.ranks = std::move(ranks);
  sweep.sizes = std::move(sizes);
  sweep.backends = {"openmpi"};
  return sweep;
}

Plan plan_for(const Sweep& sweep) {
  auto plan = plan_of(sweep);
  EXPECT_TRUE(plan.is_ok()) << plan.status().message();
  return std::move(plan).value();
}

std::vector<std::string> guidelines_in(const Plan& plan) {
  std::vector<std::string> names;
  for (const Comparison& one : plan.comparisons) names.push_back(one.guideline);
  return names;
}

TEST(Guidelines, CompareANativeCallWithItsCompositionsAndALargerMessage) {
  const Plan plan = plan_for(sweep_for({Collective::all_reduce}, {2}, {4096}));
  EXPECT_THAT(guidelines_in(plan),
              ElementsAre("all_reduce <= reduce+broadcast", "all_reduce <= reduce_scatter+all_gather",
                          "all_reduce <= halves", "all_reduce <= larger"));
  ASSERT_THAT(plan.cells, SizeIs(1));
  std::vector<std::string> systems;
  for (const Case& one : plan.cells.front()) systems.push_back(one.backend);
  EXPECT_THAT(systems, ElementsAre("openmpi", "openmpi:reduce+broadcast", "openmpi:reduce_scatter+all_gather",
                                   "openmpi:halves", "openmpi"));
  EXPECT_EQ(plan.cells.front().front().bytes, 4096);
  EXPECT_EQ(plan.cells.front().back().bytes, 8192);
}

TEST(Guidelines, AreThereForEachComposition) {
  const auto known = collectives();
  const Plan plan = plan_for(sweep_for({known.begin(), known.end()}, {4}, {4096}));
  for (const Composition& one : kCompositions) {
    EXPECT_THAT(guidelines_in(plan), Contains(fmt::format("{} <= {}", to_string(one.of), one.name)));
  }
}

TEST(Guidelines, CompareANumberOfRanksWithTheNextOne) {
  const Plan plan = plan_for(sweep_for({Collective::reduce, Collective::gather}, {2, 3, 5}, {4096, 8192}));
  int compared = 0;
  for (const Comparison& one : plan.comparisons) {
    if (one.native.cell == one.other.cell) continue;
    const Case& few = plan.cells[one.native.cell].front();
    const Case& many = plan.cells[one.other.cell].front();
    EXPECT_EQ(one.guideline, "reduce <= more ranks");
    EXPECT_EQ(few.bytes, many.bytes);
    EXPECT_EQ(many.ranks, few.ranks == 2 ? 3 : 5);
    ++compared;
  }
  EXPECT_EQ(compared, 2 * 2);
}

TEST(Guidelines, AreNotOfNothing) {
  EXPECT_THAT(plan_for(sweep_for({Collective::all_reduce}, {2}, {0})).comparisons, IsEmpty());
}

/// 16 blocks of a case, a few percent apart, the same for all cases.
BlockMedians blocks_of_case(const Case& one, double time_us) {
  BlockMedians medians{.case_id = case_id(one)};
  for (int round = 0; round < 16; ++round) {
    medians.of_rounds.push_back({.round = round, .median_us = time_us * (1 + 0.01 * (round % 5))});
  }
  return medians;
}

Row right_row(const Case& one) {
  Row row = row_of(one);
  row.verdict = Verdict::ok;
  row.time_median = 100;
  row.line_ns = 100;
  return row;
}

/// The native call takes `native_us`, everything else 100 us.
Measured measured_of(const Plan& plan, double native_us) {
  Measured measured;
  for (const std::vector<Case>& cell : plan.cells) {
    for (const Case& one : cell) {
      measured.add(case_id(cell.front()), blocks_of_case(one, one == plan.cells.front().front() ? native_us : 100));
      measured.add(case_id(cell.front()), right_row(one));
    }
  }
  return measured;
}

class JudgeComparison : public testing::Test {
 protected:
  Found judge(const Measured& first, const Measured* again = nullptr) {
    return judge_comparison(plan_.comparisons.front(), plan_.cells, first, again);
  }
  const Plan plan_ = plan_for(sweep_for({Collective::all_reduce}, {2}, {65536}));
};

TEST_F(JudgeComparison, FindsANativeCallThatIsSlowerTwice) {
  const Measured slow = measured_of(plan_, 130), sound = measured_of(plan_, 100);
  EXPECT_EQ(judge(slow).cell.judgement.opinion, Opinion::slower);
  const Found found = judge(slow, &slow);
  EXPECT_EQ(found.cell.judgement.opinion, Opinion::slower);
  EXPECT_NEAR(*found.cell.judgement.ratio, 1.3, 1e-9);
  EXPECT_EQ(found.cell.judgement.reason, "confirmed by 16 pairs of fresh blocks, ratio 1.300");
  EXPECT_EQ(found.cell.evidence.cell, "all_reduce <= reduce+broadcast/openmpi/P2/65536B");
  EXPECT_THAT(found.cell.evidence.other_case, HasSubstr("/openmpi:reduce+broadcast.none/"));
  EXPECT_EQ(judge(slow, &sound).cell.judgement.opinion, Opinion::undecided);
}

TEST_F(JudgeComparison, OfEqualAndFasterOnesIsNoViolation) {
  const Measured same = measured_of(plan_, 101), faster = measured_of(plan_, 50), none;
  EXPECT_EQ(judge(same, &none).cell.judgement.opinion, Opinion::same);
  EXPECT_EQ(judge(faster, &none).cell.judgement.opinion, Opinion::faster);
}

TEST_F(JudgeComparison, PairsBlocksOfOneRoundOnly) {
  Measured measured = measured_of(plan_, 130);
  BlockMedians later = blocks_of_case(plan_.cells.front()[1], 100);
  for (BlockMedian& one : later.of_rounds) one.round += 10;
  measured.add(case_id(plan_.cells.front().front()), later);
  const Found found = judge(measured);
  EXPECT_EQ(found.cell.judgement.opinion, Opinion::undecided);
  EXPECT_THAT(found.cell.judgement.reason, HasSubstr("6 pairs of blocks, too few for an interval of 99 %"));
}

TEST_F(JudgeComparison, OfAWrongResultIsWrongOnEitherSide) {
  for (const std::size_t side : {0U, 1U}) {
    Measured measured = measured_of(plan_, 100);
    Row row = right_row(plan_.cells.front()[side]);
    row.verdict = Verdict::wrong;
    row.reason = "element 3";
    measured.add(case_id(plan_.cells.front().front()), row);
    EXPECT_EQ(judge(measured).cell.judgement.opinion, Opinion::wrong);
    EXPECT_THAT(judge(measured).cell.judgement.reason, HasSubstr("element 3"));
  }
}

TEST_F(JudgeComparison, LeavesOutWhatCannotBeComposedAndMissesWhatWasNotMeasured) {
  Measured measured = measured_of(plan_, 100);
  Row row = right_row(plan_.cells.front()[1]);
  row.verdict = Verdict::skipped;
  row.reason = "it has no reduce";
  measured.add(case_id(plan_.cells.front().front()), row);
  EXPECT_EQ(judge(measured).state, Found::State::left_out);
  EXPECT_EQ(judge(measured).reason, "it has no reduce");
  EXPECT_EQ(judge(Measured()).cell.judgement.opinion, Opinion::missing);
}

TEST(JudgeRanks, InTwoStatesOfTheMachineIsInvalid) {
  const Plan plan = plan_for(sweep_for({Collective::all_reduce}, {2, 4}, {65536}));
  const Comparison& comparison = plan.comparisons.back();
  ASSERT_EQ(comparison.guideline, "all_reduce <= more ranks");
  Measured measured = measured_of(plan, 130);
  EXPECT_EQ(judge_comparison(comparison, plan.cells, measured).cell.judgement.opinion, Opinion::slower);
  const Case& other = plan.cells[comparison.other.cell].front();
  Row row = right_row(other);
  row.line_ns = 500;
  measured.add(case_id(other), row);
  EXPECT_EQ(judge_comparison(comparison, plan.cells, measured).cell.judgement.opinion, Opinion::invalid);
}

TEST(CellsToConfirm, HaveTheNativeCallFirstAndNothingThatIsNotNeeded) {
  const Plan plan = plan_for(sweep_for({Collective::all_reduce, Collective::gather}, {2}, {4096}));
  const auto halves = std::ranges::find(plan.comparisons, "all_reduce <= halves", &Comparison::guideline);
  const auto cells = cells_to_confirm(std::span(&*halves, 1), plan.cells);
  ASSERT_THAT(cells, SizeIs(1));
  ASSERT_THAT(cells.front(), SizeIs(2));
  EXPECT_EQ(cells.front().front(), plan.cells.front().front());
  EXPECT_EQ(cells.front().back().backend, "openmpi:halves");
}

}  // namespace
}  // namespace tutti::harness::guidelines
