// SPDX-License-Identifier: Apache-2.0
#include "harness/record/launches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/report/table.h"

namespace tutti::harness::record {
namespace {

using testing::HasSubstr;
using testing::Not;

Row row_of_launch(const std::string& backend, std::int64_t launch, double median, double half,
                  std::int64_t bytes = 64) {
  Case one;
  one.collective = Collective::all_reduce;
  one.op = Op::sum;
  one.ranks = 2;
  one.bytes = bytes;
  one.count = bytes / 4;
  one.backend = backend;
  one.algorithm = backend_of(backend) == kOwnBackend ? "ring" : kNone;
  Row row = row_of(one);
  set_times(row,
            {.samples = 30,
             .median = median,
             .ci_low = median - half,
             .ci_high = median + half,
             .min = median,
             .max = median},
            one.problem());
  row.launch = launch;
  row.verdict = Verdict::ok;
  return row;
}

const std::string kCell = "all_reduce/shm/float/sum/P2.processes/none/64B/out/private/isolated";

/// `medians` of ours, and theirs twice as long, one launch each.
Launches launches_of(const std::vector<double>& medians) {
  Launches launches({kCell});
  std::int64_t launch = 0;
  for (const double median : medians) {
    ++launch;
    launches.add(
        std::vector{row_of_launch("tutti", launch, median, 0.1), row_of_launch("openmpi", launch, 2 * median, 0.2)});
  }
  return launches;
}

TEST(Launches, CellOfACaseHasNoBackend) {
  EXPECT_EQ(cell_of_case("all_reduce/tutti.ring/shm/float"), "all_reduce/shm/float");
  EXPECT_EQ(cell_of_case(row_of_launch("openmpi", 1, 1, 0).case_id), kCell);
}

TEST(Launches, TimeIsTheMedianOfTheirMediansWithoutAnIntervalBelowSix) {
  const Row row = launches_of({5, 1, 3}).cells().at(0).at(0);
  EXPECT_EQ(row.time_median, 3);
  EXPECT_EQ(row.time_ci_low, std::nullopt);
  EXPECT_EQ(row.time_min, 1);
  EXPECT_EQ(row.time_max, 5);
  EXPECT_EQ(row.samples, 90);
  EXPECT_DOUBLE_EQ(*row.algbw, 64 / 3.0 * 1e-3);
  EXPECT_DOUBLE_EQ(*row.busbw, *row.algbw);  // two ranks
}

TEST(Launches, TheShareOfTheLimitIsTheirMedian) {
  Launches launches({kCell});
  for (const int launch : {1, 2, 3}) {
    Row row = row_of_launch("tutti", launch, 10, 1);
    if (launch > 1) row.limit_fraction = 0.1 * launch;
    launches.add(std::vector{row});
  }
  EXPECT_DOUBLE_EQ(*launches.cells().at(0).at(0).limit_fraction, 0.25);
}

TEST(Launches, TheRateOfMessagesIsThatOfTheMedian) {
  Case one;
  one.collective = Collective::message_rate;
  one.ranks = 2;
  one.pairing.window = 64;
  one.bytes = 8;
  Launches launches({cell_of_case(case_id(one))});
  for (const double median : {4.0, 1.0, 2.0}) {
    Row row = row_of(one);
    set_times(row, {.samples = 30, .median = median}, one.problem());
    row.verdict = Verdict::ok;
    launches.add(std::vector{row});
  }
  const Row joined = launches.cells().at(0).at(0);
  EXPECT_EQ(joined.time_median, 2.0);
  EXPECT_DOUBLE_EQ(joined.message_rate.value(), 32e6);
  EXPECT_DOUBLE_EQ(joined.algbw.value(), 64 * 8 / 2e3);
}

TEST(Launches, RanksTakeTheMedianOfTheLaunchesToo) {
  Launches launches({kCell});
  for (const double time : {4.0, 1.0, 2.0}) {
    Row row = row_of_launch("tutti", 1, time, 0.1);
    row.rank_time_min = time;
    row.rank_time_mean = 10 * time;
    row.rank_time_max = 100 * time;
    launches.add(std::vector{row});
  }
  const Row joined = launches.cells().at(0).at(0);
  EXPECT_EQ(joined.rank_time_min, 2);
  EXPECT_EQ(joined.rank_time_mean, 20);
  EXPECT_EQ(joined.rank_time_max, 200);
}

TEST(Launches, FewerIterationsInOneStandsWithAll) {
  Launches launches({kCell});
  std::vector<Row> rows{row_of_launch("tutti", 1, 10, 1), row_of_launch("tutti", 2, 12, 1)};
  add_mark(rows[1], kFewerIterations);
  launches.add(rows);
  EXPECT_TRUE(has_mark(launches.cells().front().front(), kFewerIterations));
}

TEST(Launches, SixHaveAnInterval) {
  const Row row = launches_of({1, 2, 3, 4, 5, 6}).cells().at(0).at(0);
  EXPECT_EQ(row.time_median, 3.5);
  EXPECT_EQ(row.time_ci_low, 1);
  EXPECT_EQ(row.time_ci_high, 6);
  EXPECT_THAT(launches_of({1, 2, 3, 4, 5, 6}).spread(), HasSubstr("ci is the 95 % interval over launches"));
}

TEST(Launches, SpreadIsTheirsAndThatWithinOne) {
  const std::string text = launches_of({9, 10, 12}).spread();
  EXPECT_THAT(text, HasSubstr("# 3 launches, 6 rows in all: time is the median of their medians"));
  EXPECT_THAT(text, HasSubstr("an interval over launches needs at least 6"));
  EXPECT_THAT(text,
              HasSubstr("#   " + kCell + ": tutti.ring 15.0 / 1.0, openmpi 15.0 / 1.0; tutti.ring / openmpi 0.500\n"));
  EXPECT_THAT(launches_of({9}).spread(), HasSubstr("tutti.ring - / 1.1"));
  EXPECT_EQ(Launches({kCell}).spread(), "");
}

TEST(Launches, RatioIsTakenWithinEach) {
  Launches launches({kCell});
  launches.add(std::vector{row_of_launch("tutti", 1, 10, 1), row_of_launch("openmpi", 1, 40, 1)});
  launches.add(std::vector{row_of_launch("tutti", 2, 30, 1), row_of_launch("openmpi", 2, 60, 1)});
  launches.add(std::vector{row_of_launch("tutti", 3, 20, 1)});  // theirs is not there
  const auto cells = launches.cells();
  EXPECT_DOUBLE_EQ(*launches.ratio(cells.at(0).at(0), cells.at(0).at(1)), (0.25 + 0.5) / 2);
  Table table([&](const Row& ours, const Row& theirs) { return launches.ratio(ours, theirs); });
  EXPECT_THAT(table.cell(cells.at(0)), HasSubstr("   0.38\n"));
}

TEST(Launches, RatiosHaveAnIntervalAndABackendIsHeldAgainstItself) {
  const std::string large = "all_reduce/shm/float/sum/P2.processes/none/128B/out/private/isolated";
  const std::string larger = "all_reduce/shm/float/sum/P2.processes/none/256B/out/private/isolated";
  Launches launches({kCell, large, larger});
  for (int launch = 1; launch <= 6; ++launch) {
    launches.add(std::vector{row_of_launch("tutti", launch, 8 + launch, 1), row_of_launch("openmpi", launch, 40, 1),
                             row_of_launch("tutti:2", launch, 11.5, 1)});
    launches.add(std::vector{row_of_launch("tutti", launch, 10, 1, 128), row_of_launch("tutti:2", launch, 12, 1, 128)});
    launches.add(std::vector{row_of_launch("tutti", launch, 10, 1, 256), row_of_launch("tutti:2", launch, 10, 1, 256)});
  }
  const std::string text = launches.spread();
  EXPECT_THAT(text, HasSubstr("; ratios of times with their 95 % interval over launches\n"));
  EXPECT_THAT(text, HasSubstr("; tutti.ring / openmpi 0.287 (0.225 to 0.350); "
                              "tutti.ring / tutti:2.ring 1.000 (0.783 to 1.217)\n"));
  EXPECT_THAT(text, HasSubstr("; tutti.ring / tutti:2.ring 0.833 (0.833 to 0.833)\n"));
  EXPECT_THAT(text,
              HasSubstr("# a backend against itself: the interval of the ratio contains 1 in 2 of 3 cells (66.7 %)\n"));
  EXPECT_THAT(launches_of({1, 2, 3, 4, 5, 6}).spread(), Not(HasSubstr("against itself")));
}

TEST(Launches, AWrongResultIsNotOutvoted) {
  Launches launches({kCell});
  Row wrong = row_of_launch("tutti", 2, 1, 0.1);
  wrong.verdict = Verdict::wrong;
  wrong.reason = "bits";
  launches.add(std::vector{row_of_launch("tutti", 1, 8, 0.1)});
  launches.add(std::vector{wrong});
  launches.add(std::vector{row_of_launch("tutti", 3, 8, 0.1)});
  const Row row = launches.cells().at(0).at(0);
  EXPECT_EQ(row.verdict, Verdict::wrong);
  EXPECT_EQ(row.reason, "bits");
  EXPECT_EQ(row.time_median, 8);  // of those that are right
}

TEST(Launches, WhatSomeLaunchesMeasuredIsNotSkipped) {
  Launches launches({kCell});
  launches.add(std::vector{row_of_launch("tutti", 1, 8, 0.1)});
  for (int launch = 2; launch <= 6; ++launch) {
    Row skipped = row_of_launch("tutti", launch, 1, 0.1);
    skipped.time_median.reset();
    skipped.verdict = Verdict::skipped;
    skipped.reason = "it was over before";
    launches.add(std::vector{skipped});
  }
  const Row row = launches.cells().at(0).at(0);
  EXPECT_EQ(row.verdict, Verdict::ok);
  EXPECT_EQ(row.reason, "1 of 6 launches: it was over before");
  EXPECT_EQ(row.time_median, 8);
}

TEST(Launches, OfOneBlockTheCellsOfAStarterStandTogether) {
  const std::string large = "all_reduce/shm/float/sum/P2.processes/none/128B/out/private/isolated";
  const std::string other = "broadcast/shm/float/none/P2.processes/root0/128B/out/private/isolated";
  Launches launches({kCell, large, other});
  Row broadcast = row_of_launch("tutti", 1, 1, 0.1);
  broadcast.case_id = "broadcast/tutti.ring/shm/float/none/P2.processes/root0/128B/out/private/isolated";
  for (const char* starter : {"spawn", "openmpi"}) {
    for (Row row : {row_of_launch("tutti", 1, 1, 0.1), row_of_launch("tutti", 1, 1, 0.1, 128), broadcast}) {
      row.starter = starter;
      launches.add(std::vector{row});
    }
  }
  std::vector<std::string> order;
  for (const auto& cell : launches.cells()) order.push_back(cell[0].starter + " " + cell_of_case(cell[0].case_id));
  EXPECT_EQ(order, (std::vector{"spawn " + kCell, "spawn " + large, "openmpi " + kCell, "openmpi " + large,
                                "spawn " + other, "openmpi " + other}));
}

TEST(Launches, OfManyCellsTheFiveThatLieFurthestApartAreShown) {
  std::vector<std::string> cells;
  for (int bytes = 8; bytes < 16; ++bytes) {
    cells.push_back(fmt::format("all_reduce/shm/float/sum/P2.processes/none/{}B/out/private/isolated", bytes));
  }
  Launches launches(cells);
  for (int bytes = 8; bytes < 16; ++bytes) {
    launches.add(std::vector{row_of_launch("tutti", 1, 10, 0.1, bytes)});
    launches.add(std::vector{row_of_launch("tutti", 2, 10 + bytes, 0.1, bytes)});
  }
  const std::string text = launches.spread();
  EXPECT_LT(text.find("/15B/"), text.find("/14B/"));
  EXPECT_THAT(text, HasSubstr("/11B/"));
  EXPECT_THAT(text, Not(HasSubstr("/10B/")));
  EXPECT_THAT(text, HasSubstr("#   and 3 with less between launches: --csv and --json have the rows of each launch\n"));
}

TEST(Launches, CellsAreToldInTheOrderOfTheSweepAsFarAsTheyRan) {
  const std::string large = "all_reduce/shm/float/sum/P2.processes/none/128B/out/private/isolated";
  Launches launches({kCell, "not run", large});
  launches.add(std::vector{row_of_launch("tutti", 1, 1, 0.1, 128)});
  launches.add(std::vector{row_of_launch("tutti", 1, 1, 0.1, 64)});
  const auto cells = launches.cells();
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_EQ(cells[0][0].bytes, 64);
  EXPECT_EQ(cells[1][0].bytes, 128);
  EXPECT_THAT(launches.spread(), Not(HasSubstr("not run")));
}

TEST(Launches, WhatDisturbedOneOfThemStandsWithAll) {
  Launches launches({kCell});
  std::vector<Row> rows{row_of_launch("tutti", 1, 10, 1), row_of_launch("tutti", 2, 12, 1),
                        row_of_launch("tutti", 3, 14, 1)};
  rows[1].disturbed = "load; quota";
  rows[2].disturbed = "steal; load";
  rows[0].time_median.reset();
  rows[0].reason = "no time";
  rows[0].invalid_share = 1;
  rows[1].invalid_share = 0.5;
  add_mark(rows[0], kLateStarts);
  launches.add(rows);
  const Row joined = launches.cells().front().front();
  EXPECT_EQ(joined.disturbed, "load; quota; steal");
  EXPECT_EQ(joined.invalid_share, 0.75);
  EXPECT_EQ(joined.time_median, 13) << "of those that have one";
  EXPECT_EQ(joined.reason, "2 of 3 launches: no time");
  EXPECT_TRUE(has_mark(joined, kLateStarts));
}

}  // namespace
}  // namespace tutti::harness::record
