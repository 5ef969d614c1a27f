// SPDX-License-Identifier: Apache-2.0
#include "harness/gate/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::gate {
namespace {

using ::testing::HasSubstr;

GateReport report_of_two() {
  const Evidence same{.cell = "all_reduce/8B",
                      .collective = "all_reduce",
                      .bytes = 8,
                      .log_ratios = std::vector<double>(8, 0.0),
                      .this_us = {0.25},
                      .other_us = {0.25}};
  const Evidence slower{.cell = "all_reduce/1M",
                        .collective = "all_reduce",
                        .bytes = 1 << 20,
                        .log_ratios = std::vector<double>(8, 0.1),
                        .confirmation = std::vector<double>(8, 0.1),
                        .this_us = {110},
                        .other_us = {100}};
  return {.other = "the build in <base>",
          .command = "tutti gate --against \"base\"",
          .seed = 3,
          .cells = {{.evidence = same,
                     .judgement = {.opinion = Opinion::same, .ratio = 1, .low = 0.99, .high = 1.01, .floor = 2}},
                    {.evidence = slower,
                     .judgement = {.opinion = Opinion::slower,
                                   .ratio = 1.1,
                                   .low = 1.08,
                                   .high = 1.12,
                                   .floor = 0.05,
                                   .reason = "a | b"}}}};
}

TEST(GateReport, Table) {
  EXPECT_EQ(gate_table(report_of_two()),
            "# gate: this build against the build in <base>\n"
            "# cell           other (us)   this (us)   ratio     99 % interval  floor%   pairs  verdict\n"
            "  all_reduce/8B       0.250       0.250   1.000    0.990 to 1.010   200.0       8  same\n"
            "  all_reduce/1M       100.0       110.0   1.100    1.080 to 1.120     5.0      16  slower\n"
            "#   a | b\n"
            "# 2 cells: 1 slower, 1 same\n");
}

TEST(GateReport, JUnit) {
  EXPECT_EQ(gate_junit(report_of_two()),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<testsuites>\n"
            "  <testsuite name=\"tutti gate\" tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"0\">\n"
            "    <testcase classname=\"tutti.gate.all_reduce\" name=\"all_reduce/8B\">\n"
            "      <system-out>same: 0.250 us, was 0.250 us; ratio 1.000, 99 % interval 0.990 to 1.010, "
            "floor 200.0 %, 8 pairs</system-out>\n"
            "    </testcase>\n"
            "    <testcase classname=\"tutti.gate.all_reduce\" name=\"all_reduce/1M\">\n"
            "      <failure message=\"slower: 110.0 us, was 100.0 us; ratio 1.100, 99 % interval 1.080 to 1.120, "
            "floor 5.0 %, 16 pairs; a | b\" type=\"slower\">against the build in &lt;base&gt;, seed 3; again: "
            "tutti gate --against &quot;base&quot;</failure>\n"
            "    </testcase>\n"
            "  </testsuite>\n"
            "</testsuites>\n");
}

TEST(GateReport, Markdown) {
  EXPECT_EQ(gate_markdown(report_of_two()),
            "### tutti gate: 1 slower, 1 same\n\n"
            "This build against the build in \\<base\\>, 2 cells, seed 3.\n\n"
            "| verdict | cell | other (us) | this (us) | ratio | 99 % interval | floor (%) | why |\n"
            "| --- | --- | ---: | ---: | ---: | --- | ---: | --- |\n"
            "| **slower** | `all_reduce/1M` | 100.0 | 110.0 | 1.100 | 1.080 to 1.120 | 5.0 | a \\| b |\n"
            "| same | `all_reduce/8B` | 0.250 | 0.250 | 1.000 | 0.990 to 1.010 | 200.0 |  |\n"
            "\nAgain: `tutti gate --against \"base\"`\n");
}

TEST(GateReport, ARatioThatIsNoQuotientIsExplained) {
  GateReport report = report_of_two();
  report.cells[1].evidence.this_us = {150};
  for (const std::string& text : {gate_table(report), gate_markdown(report)}) {
    EXPECT_THAT(text, HasSubstr("ratio: the middle of the ratios of launches in pairs, in turn; in 1 cell it is not the "
                                "quotient of the times, each of which is the median of all launches of its side"));
  }
}

TEST(GateReport, WhatDisturbedACellIsTold) {
  GateReport report = report_of_two();
  for (GateCell& cell : report.cells) {
    cell.evidence.rows = 32;
    cell.evidence.disturbed_rows = 3;
    cell.evidence.disturbed = "load; steal";
  }
  EXPECT_THAT(gate_table(report), HasSubstr("  same\n#   3 of 32 rows were disturbed: load; steal\n"));
  EXPECT_THAT(gate_table(report), HasSubstr("  slower\n#   a | b; 3 of 32 rows were disturbed: load; steal\n"));
  EXPECT_THAT(gate_markdown(report), HasSubstr("a \\| b; 3 of 32 rows were disturbed: load; steal |\n"));
  EXPECT_THAT(gate_junit(report), HasSubstr("8 pairs; 3 of 32 rows were disturbed: load; steal</system-out>"));
}

TEST(GateReport, TextsOfABaselineAreNoMarkdown) {
  GateReport report = report_of_two();
  report.cells[0].judgement.reason = R"(a\|b `c` <img src=d> [e](f) &amp; *g*)";
  const auto escaped = HasSubstr(R"(| a\\\|b \`c\` \<img src=d\> \[e\](f) \&amp; \*g\* |)");
  EXPECT_THAT(gate_markdown(report), escaped);
  report.unfinished = "<b>";
  EXPECT_THAT(gate_markdown(report), HasSubstr("; not finished: \\<b\\>\n"));
}

TEST(GateReport, RemarksStandInEveryForm) {
  GateReport report = report_of_two();
  report.remarks = {"two | three <cells>"};
  EXPECT_THAT(gate_table(report), HasSubstr("\n# two | three <cells>\n# 2 cells: 1 slower, 1 same\n"));
  EXPECT_THAT(gate_markdown(report), HasSubstr("\nNote: two \\| three \\<cells\\>.\n\nAgain: "));
  EXPECT_THAT(gate_junit(report),
              HasSubstr("    </testcase>\n    <system-out>two | three &lt;cells&gt;\n</system-out>\n"
                        "  </testsuite>\n"));
}

TEST(GateReport, NothingThatIsNotKnownPasses) {
  GateReport report = report_of_two();
  const auto element = [&](Opinion opinion) {
    report.cells[0].judgement = {.opinion = opinion, .reason = "why"};
    const std::string text = gate_junit(report);
    const std::size_t begin = text.find("      <") + 7;
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  const std::string rest = ">against the build in &lt;base&gt;, seed 3; again: tutti gate --against &quot;base&quot;</";
  EXPECT_EQ(element(Opinion::undecided), "skipped message=\"undecided; why\"" + rest + "skipped>");
  EXPECT_EQ(element(Opinion::missing), "error message=\"missing; why\" type=\"missing\"" + rest + "error>");
  EXPECT_EQ(element(Opinion::invalid), "error message=\"invalid; why\" type=\"invalid\"" + rest + "error>");
  EXPECT_EQ(element(Opinion::wrong), "failure message=\"wrong; why\" type=\"wrong\"" + rest + "failure>");
}

TEST(GateReport, WhatIsTooShortIsCountedApart) {
  GateReport report = report_of_two();
  report.cells[0].judgement = {.opinion = Opinion::too_short, .reason = "why"};
  EXPECT_THAT(gate_table(report), HasSubstr("  too short\n#   why\n"));
  EXPECT_THAT(gate_table(report), HasSubstr("\n# 2 cells: 1 slower, 1 too short\n"));
  EXPECT_THAT(gate_markdown(report), HasSubstr("| too short | `all_reduce/8B` |"));
  EXPECT_THAT(gate_junit(report), HasSubstr(R"(tests="2" failures="1" errors="0" skipped="1")"));
  EXPECT_THAT(gate_junit(report), HasSubstr(R"(<skipped message="too short; why">)"));
  report.requires_times = true;
  EXPECT_THAT(gate_junit(report), HasSubstr(R"(tests="2" failures="1" errors="1" skipped="0")"));
  EXPECT_THAT(gate_junit(report), HasSubstr(R"(<error message="too short; why" type="too short">)"));
}

TEST(GateReport, OneThatIsNotFinishedSaysSoAndWhatItLeavesOpenIsAnError) {
  GateReport report = report_of_two();
  report.unfinished = "interrupted in block 7";
  report.cells[0].judgement = {.opinion = Opinion::undecided, .reason = "why"};
  EXPECT_THAT(gate_table(report),
              HasSubstr("\n# 2 cells: 1 slower, 1 undecided; not finished: interrupted in block 7\n"));
  EXPECT_THAT(gate_markdown(report),
              HasSubstr("### tutti gate: 1 slower, 1 undecided; not finished: interrupted in block 7\n"));
  const std::string junit = gate_junit(report);
  EXPECT_THAT(junit, HasSubstr(R"(tests="2" failures="1" errors="1" skipped="0")"));
  EXPECT_THAT(junit, HasSubstr(R"(<error message="undecided; why" type="undecided">)"));
  EXPECT_THAT(junit, HasSubstr("    <system-out>not finished: interrupted in block 7\n</system-out>\n"));
}

TEST(GateReport, HoldsNothingThatIsNoTextAndNoLineEndsOfOthers) {
  GateReport report = report_of_two();
  report.other = report.command = report.unfinished = "a\xff\nb";
  report.remarks = {"c\x1b\nd"};
  report.cells[0].judgement.reason = "e\xff\nf";
  EXPECT_THAT(gate_table(report), HasSubstr("against a\\xff b\n"));
  EXPECT_THAT(gate_table(report), HasSubstr("#   e\\xff f\n"));
  EXPECT_THAT(gate_table(report), HasSubstr("# c\\x1b d\n"));
  EXPECT_THAT(gate_table(report), HasSubstr("; not finished: a\\xff b\n"));
  EXPECT_THAT(gate_markdown(report), HasSubstr("; not finished: a\\xff b\n\nThis build against a\\xff b, 2 cells"));
  EXPECT_THAT(gate_markdown(report), HasSubstr("| e\\xff f |\n"));
  EXPECT_THAT(gate_markdown(report), HasSubstr("Note: c\\x1b d.\n\nAgain: `a\\xff b`\n"));
}

}  // namespace
}  // namespace tutti::harness::gate
