// SPDX-License-Identifier: Apache-2.0
#include "harness/report/table.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Row row_for(Collective collective, std::int64_t bytes, const std::string& backend, const std::string& algorithm) {
  Case one;
  one.collective = collective;
  one.op = is_reducing(collective) ? Op::sum : Op::none;
  one.ranks = 2;
  one.bytes = bytes;
  one.count = bytes / 4;
  one.backend = backend;
  one.algorithm = algorithm;
  return row_of(one);
}

Row timed(Row row, double median) {
  const Summary summary{.samples = 30, .median = median, .ci_low = median * 0.98, .ci_high = median * 1.01};
  set_times(row, summary, {.collective = Collective::all_reduce, .ranks = 2});
  row.limit_fraction = 0.43;
  row.verdict = Verdict::ok;
  return row;
}

std::vector<Row> pair_of(std::int64_t bytes, double ours, double theirs) {
  return {timed(row_for(Collective::all_reduce, bytes, "tutti", "one_shot"), ours),
          timed(row_for(Collective::all_reduce, bytes, "openmpi", "none"), theirs)};
}

TEST(Table, TwoBackendsStandSideBySideWithTheirRatio) {
  Table table;
  // clang-format off
  EXPECT_EQ(table.cell(pair_of(4096, 0.512, 2.048)),
            "# all_reduce float sum, P=2 processes over shm, out of place, private buffers, isolated\n"
            "#                        -------------------------- tutti --------------------------  --------------- openmpi ---------------\n"
            "#      size       count     algorithm     time    ci   algbw   busbw limit   verdict     time    ci   algbw   busbw   verdict  ratio\n"
            "#       (B)  (elements)                   (us)   (%)  (GB/s)  (GB/s)                     (us)   (%)  (GB/s)  (GB/s)\n"
            "       4096        1024      one_shot    0.512   2.0   8.000   8.000  0.43        ok    2.048   2.0   2.000   2.000        ok   0.25\n");
  EXPECT_EQ(table.cell(pair_of(16777216, 1234.4, 900.6)),
            "   16777216     4194304      one_shot     1234   2.0   13.59   13.59  0.43        ok    900.6   2.0   18.63   18.63        ok   1.37\n");
  // clang-format on
}

TEST(Table, ARatioOfThousandsLeavesABlankBeforeIt) {
  Table table;
  EXPECT_THAT(table.cell(pair_of(4096, 16149, 9.298)), HasSubstr(" ok   1737\n"));
  EXPECT_THAT(table.cell(pair_of(8192, 16149e3, 9.298)), HasSubstr(" ok  2e+06\n"));
}

TEST(Table, TakesNoRatioBetweenDifferentMemory) {
  Table table;
  std::vector<Row> rows = pair_of(4096, 0.512, 2.048);
  rows[0].memory = "host";
  rows[1].memory = "gpu";
  const std::string text = table.cell(rows);
  EXPECT_THAT(text, HasSubstr("busbw limit   verdict  ratio\n")) << "each has a limit of its own";
  EXPECT_THAT(text, HasSubstr("  0.43        ok      -\n"));
  EXPECT_THAT(table.footer({}),
              HasSubstr("# different memory: buffers lie, those of openmpi in a GPU's, those of tutti in "
                        "the host's, so no ratio is taken between them\n"));
  EXPECT_THAT(table.footer({}), Not(HasSubstr("# ratio")));
}

TEST(Table, CountsWhatAutoTookFromTheCostFormula) {
  Table table;
  std::vector<Row> rows = pair_of(4096, 0.512, 2.048);
  static_cast<void>(table.cell(rows));
  EXPECT_THAT(table.footer({}), Not(HasSubstr("cost formula")));
  add_mark(rows[0], kFromFormula);
  static_cast<void>(table.cell(rows));
  EXPECT_THAT(table.footer({}), HasSubstr("# from the cost formula: 1 row whose algorithm `auto` chose by it"));
}

TEST(Table, CountsWhatTookEachRankForAHost) {
  Table table;
  std::vector<Row> rows = pair_of(4096, 0.512, 2.048);
  add_mark(rows[0], kFlatOnHosts);
  static_cast<void>(table.cell(rows));
  EXPECT_THAT(table.footer({}), HasSubstr("# flat on unequal hosts: 1 row of an algorithm for hosts of equally many "));
}

TEST(Table, LinesStayWithin133Columns) {
  Table table;
  std::vector<Row> rows = pair_of(68719476736, 123456.7, 234567.8);
  rows[0].algorithm = "dissemination";
  rows[0].verdict = Verdict::unchecked;
  const std::string text = table.cell(rows);
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = text.find('\n', start);
    EXPECT_LE(end - start, 133U) << text.substr(start, end - start);
    EXPECT_NE(text[end - 1], ' ') << "trailing space";
    start = end + 1;
  }
}

TEST(Table, ANewBlockBeginsWhereTheWorkChanges) {
  Table table;
  EXPECT_THAT(table.cell(pair_of(8, 1, 2)), HasSubstr("# all_reduce"));
  EXPECT_THAT(table.cell(pair_of(16, 1, 2)), Not(HasSubstr("#")));
  std::vector<Row> shared = pair_of(8, 1, 2);
  for (Row& row : shared) row.buffers = "shared";
  EXPECT_THAT(table.cell(shared), testing::StartsWith("\n# all_reduce float sum, P=2 processes over shm, out of place, "
                                                      "shared buffers, isolated\n"));
}

TEST(Table, ABarrierHasNoBandwidth) {
  Table table;
  const std::vector<Row> rows{timed(row_for(Collective::barrier, 0, "tutti", "dissemination"), 0.21)};
  const std::string text = table.cell(rows);
  EXPECT_THAT(text, testing::StartsWith("# barrier, P=2 processes over shm, isolated\n"));
  EXPECT_THAT(text, HasSubstr("0  tutti      dissemination    0.210   2.0       -       -  0.43        ok\n"));
}

TEST(Table, AWindowAndAPairAreInTheTitleAndAMessagesShareBelow) {
  Table table;
  Row row = timed(row_for(Collective::bandwidth, 8, "tutti", "channel"), 32);
  row.window = 64;
  row.pair = "0-1";
  row.message_rate = 2e6;
  const std::string text = table.cell(std::vector{row});
  EXPECT_THAT(text, HasSubstr(", private buffers, window 64, pair 0-1, isolated\n"));
  EXPECT_THAT(text, HasSubstr("#   tutti.channel: 2e+06 messages/s; 0.5 us each (time / 64)\n"));
}

TEST(Table, ARootIsPartOfTheTitle) {
  Table table;
  EXPECT_THAT(table.cell(std::vector{row_for(Collective::broadcast, 8, "tutti", "knomial")}),
              testing::StartsWith("# broadcast float, root 0, P=2 processes"));
}

TEST(Table, SeveralAlgorithmsStandBelowEachOtherAgainstTheReference) {
  Table table;
  std::vector<Row> rows = pair_of(8, 1, 4);
  rows.insert(rows.begin(), timed(row_for(Collective::all_reduce, 8, "tutti", "ring"), 6));
  const std::string text = table.cell(rows);
  EXPECT_THAT(text, HasSubstr("          8           2  tutti               ring    6.000   2.0   0.001   0.001"
                              "  0.43        ok   1.50\n"));
  EXPECT_THAT(text, HasSubstr("  tutti           one_shot    1.000   2.0   0.008   0.008  0.43        ok   0.25\n"));
  EXPECT_THAT(text, HasSubstr("  openmpi                -    4.000   2.0   0.002   0.002  0.43        ok\n"));
}

TEST(Table, WhatIsNotOkSaysWhyOncePerBlock) {
  Table table;
  std::vector<Row> rows = pair_of(8, 1, 2);
  rows[0].verdict = Verdict::wrong;
  rows[0].reason = "rank 1, element 0: expected 3, got 1";
  rows[1] = row_for(Collective::all_reduce, 8, "openmpi", "none");
  rows[1].verdict = Verdict::skipped;
  rows[1].reason = "runs with processes only";
  EXPECT_THAT(table.cell(rows), HasSubstr("     wrong        -     -       -       -   skipped      -\n"
                                          "#   tutti.one_shot wrong: rank 1, element 0: expected 3, got 1\n"
                                          "#   openmpi skipped: runs with processes only\n"));
  EXPECT_THAT(table.cell(rows), Not(HasSubstr("#")));
}

TEST(Table, MarksStandBesideTheNumberThatTheyDoubt) {
  Table table;
  std::vector<Row> rows = pair_of(4096, 0.512, 2.048);
  add_mark(rows[0], kNearFloor);
  add_mark(rows[1], kNoisy);
  add_mark(rows[0], kLimitTooLow);
  EXPECT_THAT(table.cell(rows),
              HasSubstr("0.512'  2.0   8.000   8.000  0.43!       ok    2.048   2.0~  2.000   2.000"));
  const std::string footer = table.footer({});
  EXPECT_THAT(footer, HasSubstr("# ~ after ci: noisy, 1 row whose interval is not within 1 % (2 % below 50 us)\n"));
  EXPECT_THAT(footer, HasSubstr("# ' after time: near floor, 1 row "));
  EXPECT_THAT(footer, HasSubstr("# ! after limit: limit too low, 1 row "));
  EXPECT_THAT(Table().footer({}), Not(HasSubstr("noisy")));
  EXPECT_THAT(Table().footer({}), Not(HasSubstr("disturbed")));
  Row late = rows[0];
  late.disturbed = "load; switches";
  late.reason = "no time: to each of 4 samples a rank came late";
  add_mark(late, kLateStarts);
  const std::string lines = table.cell(std::vector<Row>{late});
  EXPECT_THAT(lines, HasSubstr(" ok: no time: to each of 4 samples a rank came late\n"));
  EXPECT_THAT(table.footer({}),
              HasSubstr("# late starts: 1 row in which a rank came late to more than a quarter of the "
                        "samples\n"));
  EXPECT_THAT(table.footer({}),
              HasSubstr("# disturbed while they were measured: 1 row (column disturbed): load; switches\n"));
}

TEST(Table, TheEndNamesRanksThatCameLateWithTheirHosts) {
  Table table;
  Row late = pair_of(4096, 0.512, 2.048)[0];
  add_mark(late, kLateStarts);
  late.ranks = 3;
  late.last_rank = 1;
  static_cast<void>(table.cell(std::vector<Row>{late}));
  late.conditions["hosts"] = "a:3,b:1";
  late.last_rank = 2;
  for (int i = 0; i < 2; ++i) static_cast<void>(table.cell(std::vector<Row>{late}));
  late.conditions["hosts"] = "no list:";
  late.last_rank = 0;
  static_cast<void>(table.cell(std::vector<Row>{late}));
  const std::string footer = table.footer({});
  EXPECT_THAT(footer,
              HasSubstr("# late starts: 4 rows in which a rank came late to more than a quarter of the samples: "
                        "rank 2 on b (2 rows), rank 0 (1 row), rank 1 (1 row)\n"));
}

TEST(Table, WhatTimesMeanOtherThanUsualIsPartOfTheTitle) {
  Table table;
  std::vector<Row> rows = pair_of(8, 1, 2);
  for (Row& row : rows) {
    row.conditions["cache"] = "cold";
    row.conditions["sync"] = "roundtime";
    row.conditions["skew"] = "50";
  }
  EXPECT_THAT(
      table.cell(rows),
      testing::StartsWith("# all_reduce float sum, P=2 processes over shm, out of place, private buffers, isolated\n"
                          "# measured with cache cold, skew 50 us (times are from the late rank's entry on)\n"));
  EXPECT_THAT(table.cell(std::vector{row_for(Collective::all_reduce, 16, "tutti", "ring"), rows[1]}),
              Not(HasSubstr("#")));
  const std::vector<Row> skipped{row_for(Collective::all_reduce, 16, "tutti", "ring"),
                                 row_for(Collective::all_reduce, 16, "openmpi", "none")};
  EXPECT_THAT(table.cell(skipped), Not(HasSubstr("#"))) << "nothing was measured: no new block";
  EXPECT_THAT(table.cell(pair_of(16, 1, 2)), testing::StartsWith("\n# all_reduce")) << "as usual again";
  for (Row& row : rows) row.conditions["cache"] = "hot", row.conditions.erase("skew");
  EXPECT_THAT(table.cell(rows), Not(HasSubstr("measured with")));
}

TEST(Table, SamplesThatKnowOfEachOtherAreNamed) {
  Table table;
  std::vector<Row> rows = pair_of(8, 1, 2);
  rows[0].autocorrelation = 0.49;
  static_cast<void>(table.cell(rows));
  EXPECT_THAT(table.footer({}), Not(HasSubstr("autocorrelated")));
  for (const double lag : {0.5, 0.7, 0.61, 0.55}) {
    rows[1].autocorrelation = lag;
    rows[1].case_id = fmt::format("case of {}", lag);
    static_cast<void>(table.cell(rows));
  }
  EXPECT_THAT(
      table.footer({}),
      HasSubstr("# autocorrelated: 4 rows whose neighbouring samples resemble each other by 0.5 or more: case of 0.7 "
                "0.70, case of 0.61 0.61, case of 0.55 0.55, and 1 more (all: column autocorrelation of "
                "--csv)\n"));
}

std::size_t widest(const std::string& text) {
  std::size_t most = 0;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = text.find('\n', start);
    most = std::max(most, end - start);
    start = end + 1;
  }
  return most;
}

TEST(Table, StandsStackedWhereItIsTooWideForOneLine) {
  Table table;
  table.lay_out({.width = 131});
  // clang-format off
  EXPECT_EQ(table.cell(pair_of(4096, 0.512, 2.048)),
            "# all_reduce float sum, P=2 processes over shm, out of place, private buffers, isolated\n"
            "#      size       count  backend        algorithm     time    ci   algbw   busbw limit   verdict  ratio\n"
            "#       (B)  (elements)                               (us)   (%)  (GB/s)  (GB/s)\n"
            "       4096        1024  tutti           one_shot    0.512   2.0   8.000   8.000  0.43        ok   0.25\n"
            "       4096        1024  openmpi                -    2.048   2.0   2.000   2.000  0.43        ok\n");
  // clang-format on
  Table wide;
  wide.lay_out({.width = 132});
  EXPECT_EQ(widest(wide.cell(pair_of(4096, 0.512, 2.048))), 132U);
}

TEST(Table, HasFewerColumnsWhereThereIsNoRoomForAll) {
  Table table;
  table.lay_out({.width = 80});
  // clang-format off
  EXPECT_EQ(table.cell(pair_of(4096, 0.512, 2.048)),
            "# all_reduce float sum, P=2 processes over shm, out of place, private buffers,\n"
            "#   isolated\n"
            "#      size  backend        algorithm     time    ci   busbw   verdict  ratio\n"
            "#       (B)                               (us)   (%)  (GB/s)\n"
            "       4096  tutti           one_shot    0.512   2.0   8.000        ok   0.25\n"
            "       4096  openmpi                -    2.048   2.0   2.000        ok\n");
  // clang-format on
  for (const std::size_t width : {103U, 102U, 91U, 90U, 80U, 78U, 70U, 60U}) {
    Table one;
    one.lay_out({.width = width, .longest_algorithm = 13});
    std::vector<Row> rows = pair_of(8, 1, 2);
    rows[0].algorithm = "dissemination";
    rows[0].reason =
        "a reason that is so long that it has to be broken twice, where a word ends, to fit in any of these";
    EXPECT_LE(widest(one.cell(rows) + one.footer({})), width);
  }
}

TEST(Table, SeveralAlgorithmsCanBeToldApartInANarrowOne) {
  std::vector<Row> rows = pair_of(8, 1, 4);
  rows.insert(rows.begin(), timed(row_for(Collective::all_reduce, 8, "tutti", "ring"), 6));
  Table own;
  own.lay_out({.width = 60, .longest_algorithm = 8});
  EXPECT_THAT(own.cell(std::vector{rows[0], rows[1]}),
              HasSubstr("\n#      size     algorithm     time    ci    verdict\n"
                        "#       (B)                   (us)   (%)\n"
                        "          8          ring    6.000   2.0         ok\n"
                        "          8      one_shot    1.000   2.0         ok\n"));
  Table compared;
  compared.lay_out({.width = 60, .longest_algorithm = 8});
  EXPECT_THAT(compared.cell(rows), HasSubstr("\n          8          ring    6.000   2.0         ok   1.50\n"
                                             "          8      one_shot    1.000   2.0         ok   0.25\n"
                                             "          8       openmpi    4.000   2.0         ok\n"));
  Table narrowest;
  narrowest.lay_out({.width = 56, .longest_algorithm = 18});
  EXPECT_THAT(narrowest.cell(rows), HasSubstr("\n          8           one_shot    1.000   2.0         ok\n"));
}

TEST(Table, WithOneBackendThereIsRoomForABandwidthInPlaceOfTheRatio) {
  Table table;
  table.lay_out({.width = 80, .longest_algorithm = 18});
  EXPECT_THAT(table.cell(std::vector{timed(row_for(Collective::all_reduce, 4096, "tutti", "recursive_doubling"), 1)}),
              HasSubstr("#      size  backend             algorithm     time    ci   busbw   verdict\n"
                        "#       (B)                                    (us)   (%)  (GB/s)\n"
                        "       4096  tutti      recursive_doubling    1.000   2.0   4.096        ok\n"));
}

TEST(Table, BreaksLinesBetweenWordsOnly) {
  Table table;
  EXPECT_EQ(table.fitted("# a line as long as it likes to be\n"), "# a line as long as it likes to be\n");
  table.lay_out({.width = 12});
  EXPECT_EQ(table.fitted("# one two three\n#   four five     \n"), "# one two\n#   three\n#   four\n#   five     \n");
  EXPECT_EQ(table.fitted("# unbreakable/word and\n# \n\n"), "# unbreakable/word\n#   and\n# \n\n");
  EXPECT_EQ(table.fitted(""), "");
}

TEST(Table, ALongAlgorithmKeepsTheColumnsInLineWhereItIsExpected) {
  std::vector<Row> rows = pair_of(8, 1, 2);
  rows[0].algorithm = "recursive_doubling";
  for (const std::size_t width : {80U, 120U, 200U}) {
    Table table;
    table.lay_out({.width = width, .longest_algorithm = rows[0].algorithm.size()});
    const std::string text = table.cell(pair_of(4, 1, 2)) + table.cell(rows);
    std::vector<std::size_t> ends;
    for (std::size_t start = 0; start < text.size(); start = text.find('\n', start) + 1) {
      const std::string line = text.substr(start, text.find('\n', start) - start);
      if (line.starts_with(' ')) ends.push_back(line.find("1.000") + 5);
      if (line.find("time") != std::string::npos) ends.push_back(line.find("time") + 4);
    }
    std::erase_if(ends, [](std::size_t end) { return end < 10; });  // of lines of the reference
    EXPECT_THAT(ends, testing::Each(ends.front())) << text;
    EXPECT_GE(ends.size(), 3U);
  }
}

TEST(Table, OfOneRowTellsItInTheSingular) {
  Table table;
  static_cast<void>(table.cell(std::vector{timed(row_for(Collective::barrier, 0, "tutti", "dissemination"), 4)}));
  EXPECT_THAT(table.footer({}), HasSubstr("# 1 row in 1 cell: 1 ok, 0 wrong"));
}

TEST(Table, OverlapIsSaidWhereItWasMeasured) {
  Table table;
  std::vector<Row> rows = pair_of(4096, 0.5, 2);
  rows[0].overlap = 12.4;
  rows[0].overlap_called = 71.6;
  rows[0].conditions["overlap_calls"] = "16";
  const std::string text = table.cell(rows);
  EXPECT_THAT(text, HasSubstr("\n#   tutti.one_shot: overlap with computing 12 %, with 16 calls meanwhile 72 %\n"));
  EXPECT_THAT(text, Not(HasSubstr("openmpi: overlap")));
}

TEST(Table, ComparesOnlyRightResultsOfOneLaunch) {
  Table table;
  std::vector<Row> rows = pair_of(8, 1, 2);
  rows[0].verdict = Verdict::wrong;
  EXPECT_THAT(table.cell(rows), testing::EndsWith("ok      -\n"));
  rows = pair_of(8, 1, 2);
  rows[1].launch = 2;
  EXPECT_THAT(table.cell(rows), testing::EndsWith("ok      -\n"));
  EXPECT_THAT(table.footer({}), Not(HasSubstr("geometric mean")));
}

TEST(Table, TheMeanOfRatiosHasNoCallsWithoutBytesButBarriers) {
  Table table;
  static_cast<void>(table.cell(pair_of(8, 1, 4)));
  EXPECT_THAT(table.cell(pair_of(0, 4, 1)), testing::EndsWith("ok   4.00\n"));
  EXPECT_THAT(table.footer({}), HasSubstr("geometric mean 0.25 over 1, of which 0 above 1\n"));
  static_cast<void>(table.cell(std::vector{timed(row_for(Collective::barrier, 0, "tutti", "dissemination"), 4),
                                           timed(row_for(Collective::barrier, 0, "openmpi", "none"), 1)}));
  EXPECT_THAT(table.footer({}), HasSubstr("geometric mean 1.00 over 2, of which 1 above 1\n"));
}

TEST(Table, ATimeThatIsNotKnownToWithinItselfIsInNoMean) {
  Table table;
  std::vector<Row> unknown = pair_of(64, 8, 4);
  unknown[0].time_ci_low = 2;
  unknown[0].time_ci_high = 19;
  EXPECT_THAT(table.cell(unknown), HasSubstr("2.00"));
  EXPECT_THAT(table.footer({}),
              HasSubstr("# ratio, time of tutti / time of openmpi: 1 left out, as a ci is above 100 %\n"));
  EXPECT_THAT(table.cell(pair_of(128, 1, 4)), HasSubstr("0.25"));
  EXPECT_THAT(table.footer({}),
              HasSubstr("geometric mean 0.25 over 1, of which 0 above 1; 1 left out, as a ci is above 100 %\n"));
}

TEST(Table, FooterSaysWhatWasVerifiedAndWhatWasNot) {
  Table table;
  static_cast<void>(table.cell(pair_of(8, 1, 4)));
  static_cast<void>(table.cell(pair_of(16, 2, 2)));
  static_cast<void>(table.cell(pair_of(32, 2, 1)));
  Row skipped = row_for(Collective::broadcast, 8, "openmpi", "none");
  skipped.verdict = Verdict::skipped;
  skipped.reason = "no out-of-place broadcast";
  static_cast<void>(table.cell(std::vector{skipped}));
  static_cast<void>(table.cell(std::vector{skipped}));
  EXPECT_EQ(table.footer(std::vector<LeftOut>{{.cells = 2, .reason = "root 3 on 2 ranks"}}),
            "\n# 8 rows in 5 cells: 6 ok, 0 wrong, 0 unchecked, 2 skipped, 0 error\n"
            "# ratio, time of tutti / time of openmpi: geometric mean 0.79 over 3, of which 1 above 1\n"
            "# skipped: 2 x openmpi: no out-of-place broadcast\n"
            "# left out: 2 x root 3 on 2 ranks\n");
  EXPECT_EQ(table.rows_with(Verdict::ok), 6);
  EXPECT_EQ(table.rows_with(Verdict::wrong), 0);
}

}  // namespace
}  // namespace tutti::harness::report
