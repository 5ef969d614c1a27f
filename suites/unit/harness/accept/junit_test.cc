// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/junit.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/accept/acceptance.h"
#include "suites/unit/harness/accept/reports.h"

namespace tutti::harness::accept {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// All stages were played, in half a second each.
AcceptReport all_played(int nodes) {
  AcceptReport report = healthy(nodes);
  std::vector<int> all(static_cast<std::size_t>(nodes));
  std::iota(all.begin(), all.end(), 0);
  for (const std::string& stage : all_stages()) report.stages.push_back({.name = stage, .seconds = 0.5, .nodes = all});
  return report;
}

/// The node does not play from that stage on.
void leave_out(AcceptReport& report, int node, std::string_view from) {
  auto stage = std::ranges::find(report.stages, from, &StageReport::name);
  for (; stage != report.stages.end(); ++stage) std::erase(stage->nodes, node);
}

StageReport& stage_in(AcceptReport& report, std::string_view name) {
  return *std::ranges::find(report.stages, name, &StageReport::name);
}

/// The text of one suite; empty: it is not there.
std::string suite_of(const AcceptReport& report, std::string_view stage) {
  const std::string text = accept_junit(report);
  const std::size_t begin = text.find(fmt::format("  <testsuite name=\"accept.{}\"", stage));
  return begin == text.npos ? "" : text.substr(begin, text.find("</testsuite>", begin) - begin);
}

/// How a case begins, and what is in it.
std::string case_of(std::string_view classname, std::string_view name, std::string_view content = "") {
  return fmt::format("    <testcase classname=\"tutti.accept.{}\" name=\"{}\">\n{}", classname, name,
                     content.empty() ? std::string("    </testcase>\n") : fmt::format("      <{}", content));
}

TEST(AcceptJunit, HasASuiteForEachStage) {
  const AcceptReport report = all_played(4);
  const std::string text = accept_junit(report);
  std::size_t at = 0;
  for (const std::string& stage : all_stages()) {
    const std::size_t next = text.find(fmt::format("<testsuite name=\"accept.{}\" ", stage));
    EXPECT_LT(at, next) << stage;
    at = next;
    const int leaves = stage == "pairs" ? 2 : 0;
    EXPECT_THAT(
        suite_of(report, stage),
        HasSubstr(fmt::format("tests=\"{}\" failures=\"0\" errors=\"0\" skipped=\"0\" time=\"0.500\">", 4 + leaves)));
    EXPECT_THAT(suite_of(report, stage), HasSubstr(case_of(stage + ".node", "node4")));
  }
  EXPECT_THAT(suite_of(report, "inventory"), HasSubstr("    <system-out>4 nodes passed, none failed, "));
  EXPECT_THAT(suite_of(report, "job"), Not(HasSubstr("4 nodes passed")));
}

TEST(AcceptJunit, AFindingIsInItsStageAndLaterOnesSkipTheNode) {
  AcceptReport report = all_played(4);
  add(report, {.what = Class::nic_out, .first = 1, .judgement = slow(), .stage = "pairs"});
  add(report, {.what = Class::link, .first = 0, .second = 2, .judgement = slow(), .stage = "pairs"});
  EXPECT_THAT(suite_of(report, "shifts"), HasSubstr(case_of("shifts.node", "node2", "skipped message=\"found in")))
      << "it played, and was not judged";
  EXPECT_THAT(suite_of(report, "groups"), HasSubstr(case_of("groups.node", "node2"))) << "pairs do not block";
  leave_out(report, 1, "groups");
  const std::string pairs = suite_of(report, "pairs");
  EXPECT_THAT(pairs, HasSubstr(R"(tests="7" failures="2" errors="0" skipped="0")"));
  EXPECT_THAT(pairs, HasSubstr(case_of("pairs.node", "node2", "failure message=\"node2 sends 10.0 % (9.0 to 11.0)")));
  EXPECT_THAT(pairs, HasSubstr(case_of("pairs.link", "node1, node3", "failure message=\"node1 and node3 are slow")));
  EXPECT_THAT(suite_of(report, "alone"), HasSubstr(case_of("alone.node", "node2")));
  const std::string groups = suite_of(report, "groups");
  EXPECT_THAT(groups, HasSubstr(R"(tests="4" failures="0" errors="0" skipped="1")"));
  EXPECT_THAT(groups,
              HasSubstr(case_of("groups.node", "node2", "skipped message=\"found in stage pairs: node2 sends")));
  EXPECT_THAT(groups, HasSubstr(case_of("groups.node", "node1")));
}

TEST(AcceptJunit, ANodeThatIsSlowAloneHasPassedTheRest) {
  AcceptReport report = all_played(3);
  add(report, {.what = Class::node, .first = 1, .judgement = slow(), .stage = "alone"});
  add(report, {.what = Class::dead, .first = 2, .judgement = {.verdict = Verdict::fail}, .stage = "alone"});
  leave_out(report, 2, "pairs");
  EXPECT_THAT(suite_of(report, "alone"), HasSubstr(R"(tests="3" failures="2")"));
  EXPECT_THAT(suite_of(report, "pairs"), HasSubstr(case_of("pairs.node", "node2")));
  EXPECT_THAT(suite_of(report, "pairs"),
              HasSubstr(case_of("pairs.leaf", "B", "skipped message=\"none of its nodes played\"/>")));
  EXPECT_THAT(
      suite_of(report, "pairs"),
      HasSubstr(case_of("pairs.node", "node3", "skipped message=\"found in stage alone: node3 does not answer")));
}

TEST(AcceptJunit, NodesOfABrokenPairAreNotInLaterStages) {
  AcceptReport report = all_played(4);
  add(report,
      {.what = Class::hung, .first = 0, .second = 2, .judgement = {.verdict = Verdict::fail}, .stage = "pairs"});
  for (const int node : {0, 2}) leave_out(report, node, "shifts");
  EXPECT_THAT(suite_of(report, "pairs"), HasSubstr(case_of("pairs.node", "node3")));
  EXPECT_THAT(suite_of(report, "pairs"), HasSubstr(case_of("pairs.link", "node1, node3", "failure ")));
  EXPECT_THAT(suite_of(report, "rings"), HasSubstr(R"(failures="0" errors="0" skipped="2")"));
}

TEST(AcceptJunit, WrongDataAreBlamedOnBothNodes) {
  AcceptReport report = all_played(4);
  add(report, {.what = Class::wrong,
               .first = 0,
               .second = 2,
               .judgement = {.verdict = Verdict::fail},
               .detail = "element 17",
               .stage = "pairs"});
  EXPECT_THAT(suite_of(report, "pairs"), HasSubstr(R"(tests="7" failures="3" errors="0")"));
}

TEST(AcceptJunit, AnAbsentNodeIsAnErrorOnce) {
  AcceptReport report = all_played(4);
  report.absences[3] = "ssh exit 255\n\"Permission denied\"";
  EXPECT_THAT(suite_of(report, "inventory"),
              HasSubstr(case_of("inventory.node", "node4", "error message=\"ssh exit 255")));
  for (const char* const stage : {"alone", "pairs", "job"}) {
    EXPECT_THAT(suite_of(report, stage), HasSubstr(R"(failures="0" errors="0" skipped="1")")) << stage;
  }
  stage_in(report, "inventory").left_out = "it is not asked for";
  EXPECT_THAT(suite_of(report, "inventory"), HasSubstr(R"(errors="0" skipped="4")"));
  EXPECT_THAT(suite_of(report, "alone"), HasSubstr(R"(errors="1" skipped="0")"));
}

TEST(AcceptJunit, AStageThatIsLeftOutIsSkippedByAll) {
  AcceptReport report = all_played(4);
  stage_in(report, "pairs").left_out = "it is not asked for";
  EXPECT_THAT(suite_of(report, "pairs"), HasSubstr(R"(tests="6" failures="0" errors="0" skipped="6")"));
  EXPECT_THAT(suite_of(report, "pairs"),
              HasSubstr(case_of("pairs.node", "node1", "skipped message=\"it is not asked for\"/>")));
  EXPECT_THAT(suite_of(report, "pairs"), HasSubstr(case_of("pairs.leaf", "B", "skipped ")));
}

TEST(AcceptJunit, WhatWasNotTestedIsAnError) {
  AcceptReport report = all_played(4);
  report.findings.is_interrupted = true;
  report.findings.rounds = 1;
  for (NodeFigures& node : report.findings.nodes) node.verdict = Verdict::untested;
  EXPECT_THAT(suite_of(report, "pairs"), HasSubstr(R"(tests="6" failures="0" errors="6")"));
  EXPECT_THAT(suite_of(report, "pairs"),
              HasSubstr(case_of("pairs.node", "node1", "error message=\"the end came first\" type=\"UNTESTED\"/>")));
  EXPECT_THAT(suite_of(report, "pairs"),
              HasSubstr(case_of("pairs.leaf", "A", "error message=\"1 of 3 rounds were played\" type=\"UNTESTED\"/>")));
  // None of its rounds was played.
  report.findings.rounds = report.findings.planned_rounds = 0;
  stage_in(report, "pairs").left_out = "the end came first";
  EXPECT_THAT(suite_of(report, "pairs"), HasSubstr(R"(tests="6" failures="0" errors="4" skipped="2")"));
}

TEST(AcceptJunit, NodesOfTwoSpeedsAreUndecidedWhereTheyWereFound) {
  AcceptReport report = all_played(4);
  add(report,
      {.what = Class::split, .judgement = {.verdict = Verdict::undecided}, .members = {0, 1}, .stage = "alone"});
  for (NodeFigures& node : report.findings.nodes) node.verdict = Verdict::undecided;
  EXPECT_THAT(suite_of(report, "alone"), HasSubstr(R"(tests="5" failures="0" errors="5")"));
  EXPECT_THAT(suite_of(report, "alone"), HasSubstr("message=\"split\" type=\"UNDECIDED\"/>"));
  EXPECT_THAT(suite_of(report, "pairs"), HasSubstr(R"(tests="6" failures="0" errors="0")"));
  report.findings.parts.front().stage = "pairs";
  EXPECT_THAT(suite_of(report, "pairs"), HasSubstr(R"(tests="7" failures="0" errors="7")")) << "leaves are not tried";
}

TEST(AcceptJunit, LeavesHaveCasesIfTheyAreKnown) {
  AcceptReport report = all_played(4);
  add(report, {.what = Class::uplink, .first = 1, .judgement = slow(), .stage = "pairs"});
  const std::string pairs = suite_of(report, "pairs");
  EXPECT_THAT(pairs, HasSubstr(R"(tests="6" failures="1" errors="0" skipped="0")"));
  EXPECT_THAT(pairs, HasSubstr(case_of("pairs.leaf", "B", "failure message=\"everything between leaf B and")));
  EXPECT_THAT(pairs, HasSubstr(case_of("pairs.leaf", "A", "system-out>slow both ways is untested")));
  // A second finding of the leaf has a case of its own, and so has what another stage finds.
  add(report, {.what = Class::uplink_dir, .first = 1, .judgement = slow(), .stage = "pairs"});
  add(report, {.what = Class::uplink, .first = 1, .judgement = slow(), .stage = "rings"});
  EXPECT_THAT(suite_of(report, "pairs"), HasSubstr(case_of("pairs.uplink", "B", "failure ")));
  EXPECT_THAT(suite_of(report, "rings"), HasSubstr(case_of("rings.uplink", "B", "failure ")));
  report.are_leaves_known = false;
  EXPECT_THAT(suite_of(report, "pairs"), Not(HasSubstr("pairs.leaf")));
  EXPECT_THAT(suite_of(report, "pairs"), HasSubstr(case_of("pairs.uplink", "B, 2", "failure ")));
}

TEST(AcceptJunit, RailsHaveCasesInPairsAndShifts) {
  AcceptReport report = all_played(3);
  for (const char* const name : {"ib0", "ib1"}) {
    report.rails.push_back({.name = name});
    report.rails.back().findings.nodes.resize(report.names.size());
  }
  add(report, {.what = Class::nic_out, .first = 1, .judgement = slow(), .stage = "pairs", .rail = 1});
  report.rails[1].findings.nodes[1].verdict = Verdict::fail;
  add(report, {.what = Class::nic, .first = 2, .judgement = slow(), .stage = "shifts", .rail = 0});
  report.rails[0].findings.nodes[2].verdict = Verdict::fail;
  const std::string pairs = suite_of(report, "pairs"), shifts = suite_of(report, "shifts");
  EXPECT_THAT(pairs, HasSubstr(R"(tests="11" failures="2" errors="0" skipped="0")"));
  EXPECT_THAT(pairs, HasSubstr(case_of("pairs.rail", "node2, ib1", "failure message=\"rail ib1: node2 sends")));
  EXPECT_THAT(pairs, HasSubstr(case_of("pairs.rail", "node2, ib0")));
  EXPECT_THAT(pairs, HasSubstr(case_of("pairs.rail", "node3, ib0")));
  EXPECT_THAT(shifts, HasSubstr(R"(tests="9" failures="2" errors="0" skipped="2")"));
  EXPECT_THAT(shifts, HasSubstr(case_of("shifts.rail", "node2, ib0")));
  EXPECT_THAT(shifts, HasSubstr(case_of("shifts.rail", "node3, ib0", "failure message=\"rail ib0: node3")));
}

}  // namespace
}  // namespace tutti::harness::accept
