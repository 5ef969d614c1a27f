// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/sentences.h"

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/unit/harness/accept/reports.h"

namespace tutti::harness::accept {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string said(const Finding& finding) { return sentence_of(healthy(8), finding); }

TEST(AcceptSentence, AHealthyClusterSaysWhatWasNotLookedFor) {
  EXPECT_EQ(verdict_sentence(healthy(8)),
            "8 nodes passed, none failed, every pair tested (28 of 28, both ways). Margin 5 %; what is smaller was not "
            "looked for.");
}

TEST(AcceptSentence, AMessageThatIsFarSlowerThanASmallerOneIsADip) {
  AcceptReport report = healthy(8);
  const auto figures = [](int nodes, Measure measure, std::size_t bytes, double gbps) {
    return SizeFigures{
        .nodes = nodes, .test = {.measure = measure, .bytes = bytes}, .log_speed = std::log(gbps * 1e9), .groups = 4};
  };
  report.sizes = {figures(2, Measure::all_reduce, 8, 0.001),      figures(2, Measure::all_reduce, 1 << 20, 10),
                  figures(2, Measure::all_reduce, 64 << 20, 8.1), figures(2, Measure::all_to_all, 64 << 10, 5),
                  figures(4, Measure::all_reduce, 1 << 20, 10),   figures(4, Measure::all_reduce, 64 << 20, 7),
                  figures(4, Measure::all_to_all, 128 << 20, 4)};
  EXPECT_EQ(dip_sentences(report),
            std::vector<std::string>{"all_reduce of 64M on groups of 4 has 30 % less bandwidth than of 1M: a dip"});
}

TEST(AcceptSentence, EachClassNamesThePartAndWhyNoOther) {
  const Judgement judgement = slow();
  EXPECT_EQ(
      said({.what = Class::node, .first = 4, .judgement = judgement, .partners = 7, .slow_partners = 7}),
      "node5 is slow: 10.0 % (9.0 to 11.0) below the fleet in both directions with 7 of 7 partners, and alone too: "
      "the node, not its link");
  EXPECT_EQ(said({.what = Class::nic, .first = 4, .judgement = judgement}),
            "node5 is slow: 10.0 % (9.0 to 11.0) below the fleet in both directions, and not alone: its NIC, cable or "
            "port");
  EXPECT_EQ(said({.what = Class::nic_out, .first = 4, .judgement = judgement}),
            "node5 sends 10.0 % (9.0 to 11.0) slower than the fleet, and receives as fast: its transmit side, cable or "
            "port");
  EXPECT_EQ(said({.what = Class::nic_in, .first = 4, .judgement = judgement}),
            "node5 receives 10.0 % (9.0 to 11.0) slower than the fleet, and sends as fast: its receive side, cable or "
            "port");
  EXPECT_EQ(
      said({.what = Class::link, .first = 1, .second = 2, .judgement = judgement, .thirds = {5, 6}}),
      "node2 and node3 are slow with each other only, 10.0 % (9.0 to 11.0) (tried with node6 and node7): the path "
      "between them");
  EXPECT_EQ(said({.what = Class::link_dir, .first = 1, .second = 2, .judgement = judgement}),
            "node2 sends to node3 10.0 % (9.0 to 11.0) slower than to others, and the way back is as fast: the path "
            "from node2 to node3");
  EXPECT_EQ(said({.what = Class::uplink, .first = 1, .judgement = judgement}),
            "everything between leaf B and the other leaves is 10.0 % (9.0 to 11.0) slow, nothing within it: its "
            "uplink. Its 4 nodes are not to blame");
  EXPECT_THAT(said({.what = Class::uplink_dir, .first = 1, .is_out = false, .judgement = judgement}),
              StartsWith("everything from the other leaves to leaf B is 10.0 %"));
  EXPECT_EQ(said({.what = Class::hung, .first = 1, .second = 2, .judgement = {.verdict = Verdict::fail}}),
            "node2 and node3 hang with each other; both work with others");
  EXPECT_EQ(said({.what = Class::dead, .first = 1, .judgement = {.verdict = Verdict::fail}, .thirds = {0, 2}}),
            "node2 is dead: no answer to node1 and node3");
  EXPECT_EQ(said({.what = Class::wrong,
                  .first = 1,
                  .second = 2,
                  .judgement = {.verdict = Verdict::fail},
                  .detail = "element 17 is 3, not 4"}),
            "node3 receives wrong data from node2: element 17 is 3, not 4");
}

TEST(AcceptSentence, WhatIsNotDecidedSaysSo) {
  const Judgement open{
      .verdict = Verdict::undecided, .middle = std::log(0.95), .low = std::log(0.94), .high = std::log(0.96)};
  EXPECT_EQ(
      said({.what = Class::nic, .first = 0, .judgement = open, .visits = 8}),
      "node1 is undecided: 5.0 % (4.0 to 6.0) slower than the fleet after 8 visits, and a margin of 5 % lies in the "
      "interval");
  EXPECT_THAT(said({.what = Class::unsteady, .first = 0, .judgement = {.verdict = Verdict::suspect}}),
              StartsWith("node1 is unsteady: its slowness comes and goes"));
  EXPECT_EQ(said({.what = Class::split,
                  .judgement = {.verdict = Verdict::undecided, .middle = std::log(0.8)},
                  .members = {0, 1, 2}}),
            "3 nodes are 20.0 % slower than the other 5. Which is right, only --baseline says. The slower ones: node1, "
            "node2 and node3");
}

TEST(AcceptSentence, TheVerdictCountsNodesLinksAndUplinks) {
  AcceptReport report = healthy(8);
  add(report, {.what = Class::nic_out, .first = 4, .judgement = slow()});
  EXPECT_EQ(verdict_sentence(report),
            "FAIL. node5 sends 10.0 % (9.0 to 11.0) slower than the fleet, and receives as fast: its transmit side, "
            "cable or port. 7 of 8 nodes passed. Every pair tested (28 of 28, both ways).");
  add(report, {.what = Class::link, .first = 1, .second = 2, .judgement = slow()});
  add(report, {.what = Class::uplink, .first = 1, .judgement = slow()});
  report.absences[7] = "agent: ssh exit 255";
  report.findings.tested_pairs = 21;
  EXPECT_EQ(
      verdict_sentence(report),
      "FAIL. 6 of 8 nodes passed, 1 failed, 1 not reached; a link and an uplink failed. 21 of 28 pairs measured.");
  report.findings.is_interrupted = true;
  report.findings.rounds = 5;
  EXPECT_THAT(verdict_sentence(report), StartsWith("INCOMPLETE: 5 of 7 rounds of pairs. FAIL. 6 of 8 nodes passed"));
}

TEST(AcceptSentence, TwoHostsCannotSayWhich) {
  AcceptReport report = healthy(2);
  add(report, {.what = Class::link_dir, .first = 0, .second = 1, .judgement = slow()});
  EXPECT_EQ(
      verdict_sentence(report),
      "FAIL. node1 sends to node2 10.0 % (9.0 to 11.0) slower than the way back: a transmit side, a receive side or "
      "the path, two hosts cannot say. Add a third. Every pair tested (1 of 1, both ways).");
  report.findings.parts = {{.what = Class::either, .first = 0, .second = 1, .judgement = {.verdict = Verdict::fail}}};
  EXPECT_EQ(conclusion_of(report), Conclusion::broken);
}

TEST(AcceptSentence, WhatWasNotTestedIsNotCalledTested) {
  AcceptReport report = healthy(4);
  report.findings.pairs = report.findings.tested_pairs = 0;
  EXPECT_THAT(verdict_sentence(report), StartsWith("4 nodes passed, none failed, no pair tested. "));
}

TEST(AcceptConclusion, TheGravestCounts) {
  AcceptReport report = healthy(8);
  EXPECT_EQ(conclusion_of(report), Conclusion::passed);
  add(report, {.what = Class::unsteady, .first = 0, .judgement = {.verdict = Verdict::suspect}});
  EXPECT_EQ(conclusion_of(report), Conclusion::undecided);
  report.absences[7] = "ssh";
  EXPECT_EQ(conclusion_of(report), Conclusion::untested);
  add(report, {.what = Class::nic, .first = 1, .judgement = slow()});
  EXPECT_EQ(conclusion_of(report), Conclusion::slow);
  add(report, {.what = Class::hung, .first = 2, .second = 3, .judgement = {.verdict = Verdict::fail}});
  EXPECT_EQ(conclusion_of(report), Conclusion::broken);
  add(report, {.what = Class::wrong, .first = 2, .second = 3, .judgement = {.verdict = Verdict::fail}});
  EXPECT_EQ(conclusion_of(report), Conclusion::wrong);
  EXPECT_TRUE(is_excluded(report, 1) && is_excluded(report, 2) && is_excluded(report, 3));
  EXPECT_FALSE(is_excluded(report, 0) || is_excluded(report, 7)) << "a suspicion, and a host that was not reached";
}

}  // namespace
}  // namespace tutti::harness::accept
