// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/exports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "harness/accept/table.h"
#include "suites/unit/harness/accept/reports.h"

namespace tutti::harness::accept {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

AcceptReport with_a_slow_node() {
  AcceptReport report = healthy(4);
  add(report, {.what = Class::nic_out, .first = 1, .judgement = slow()});
  report.absences[3] = "ssh exit 255\n\"Permission denied\"\x1b[1m";
  return report;
}

TEST(AcceptExports, TheHostsFileHasThoseThatPassed) {
  EXPECT_EQ(hosts_file(healthy(2)).substr(hosts_file(healthy(2)).find('\n') + 1), "node1\nnode2\n");
  const std::string text = hosts_file(with_a_slow_node());
  EXPECT_THAT(text,
              HasSubstr("\nnode1\nnode3\n# node2  FAIL nic-out -10.0% (-11.0..-9.0)\n# node4  ERROR ssh exit 255 "));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(AcceptExports, SlurmGetsAnOptionAndCommandsInComments) {
  EXPECT_EQ(slurm_file(healthy(2), "", ""), "\n# no node is to be excluded\n");
  const std::string text = slurm_file(with_a_slow_node(), "accept.html", "");
  EXPECT_THAT(text, ::testing::StartsWith("--exclude=node2\n# "));
  EXPECT_THAT(text, HasSubstr("# scontrol update NodeName=node2 State=DRAIN "
                              "Reason=\"tutti:nic-out -10.0% (-11.0..-9.0) 2023-11-14T22:23Z accept.html\"\n"));
  for (std::size_t begin = text.find('\n') + 1; begin < text.size(); begin = text.find('\n', begin) + 1) {
    EXPECT_EQ(text[begin], '#') << "nothing but the option is no comment: " << text.substr(begin);
  }
}

/// What an earlier run proposed to drain.
std::string drained(const std::string& name, const std::string& reason) {
  return fmt::format("# scontrol update NodeName={} State=DRAIN Reason=\"{}\"\n", name, reason);
}

TEST(AcceptExports, SlurmMayResumeWhatAnEarlierRunWantedToDrain) {
  const std::string old = "--exclude=node1,node9\n# To review.\n" +
                          drained("node1", "tutti:nic-out -31.0% (-32.1..-29.8) 2023-11-13T22:23Z page.html") +
                          drained("node9", "tutti:dead 2023-11-13T22:23Z") + drained("node2", "the fan is loud") +
                          drained("node2,node3", "tutti:dead") + drained("", "tutti:dead") + drained("node3", "") +
                          drained("node4", "tutti:dead").substr(2) + "# node4 is ERROR: tutti:dead\n";
  const std::string resumed =
      "\n# no node is to be excluded\n"
      "# To review. tutti runs none of these commands. Ask squeue first whether a node has a job.\n"
      "# node1 passed. It was to be drained for \"tutti:nic-out -31.0% (-32.1..-29.8) 2023-11-13T22:23Z page.html\": "
      "resume it only where sinfo -R still shows this reason\n"
      "# scontrol update NodeName=node1 State=RESUME\n";
  EXPECT_EQ(slurm_file(healthy(4), "", old), resumed);
  EXPECT_EQ(slurm_file(healthy(4), "", resumed), "\n# no node is to be excluded\n") << "it is proposed once";
  EXPECT_EQ(slurm_file(healthy(4), "", drained("node1", "tutti:dead").substr(0, 60)), "\n# no node is to be excluded\n")
      << "the end of the line is missing";
}

TEST(AcceptExports, SlurmHasAnotherReasonIfTheNodeFailsAgain) {
  const std::string text = slurm_file(with_a_slow_node(), "", drained("node2", "tutti:dead 2023-11-13T22:23Z"));
  EXPECT_THAT(text, HasSubstr(drained("node2", "tutti:nic-out -10.0% (-11.0..-9.0) 2023-11-14T22:23Z")));
  EXPECT_THAT(text, Not(HasSubstr("tutti:dead")));
}

TEST(AcceptExports, SlurmKeepsAReasonUntilTheNodeHasPassedPairs) {
  const std::string line = drained("node4", "tutti:nic-in -20.0% 2023-11-13T22:23Z");
  const std::string kept = "# An earlier run proposed this, and node4 has not passed pairs since:\n" + line;
  AcceptReport report = with_a_slow_node();  // node4 is not there
  const std::string text = slurm_file(report, "", line);
  EXPECT_THAT(text, ::testing::StartsWith("--exclude=node2\n"));
  EXPECT_THAT(text, HasSubstr(kept));
  EXPECT_THAT(text, HasSubstr("# node4 is ERROR: ssh exit 255 "));
  EXPECT_THAT(text, Not(HasSubstr("RESUME")));
  report = healthy(4);
  report.stages.push_back({.name = "pairs", .left_out = "it is not asked for"});
  EXPECT_THAT(slurm_file(report, "", text), HasSubstr(kept)) << "it passed what says nothing of its network";
  EXPECT_THAT(slurm_file(healthy(4), "", text), HasSubstr("# scontrol update NodeName=node4 State=RESUME\n"));
}

TEST(AcceptExports, NoLineOfAnOldSlurmFileIsTakenOverAsItIs) {
  const std::string old = drained("node1", "tutti:\x1b[1m\" $(reboot) `reboot` \\\r\xe2\x80\xa8") +
                          "--exclude=node3\n" + "reboot\n" + drained("node4", "tutti:x\"; reboot; \"");
  AcceptReport report = healthy(4);
  report.absences[3] = "ssh exit 255";
  const std::string text = slurm_file(report, "", old);
  EXPECT_THAT(
      text, HasSubstr("# node1 passed. It was to be drained for \"tutti:_x1b[1m_ _(reboot) _reboot_ __x0d_u2028\": "));
  EXPECT_THAT(text, HasSubstr(drained("node4", "tutti:x_; reboot; _")));
  EXPECT_EQ(text.front(), '\n');
  for (std::size_t begin = 1; begin < text.size(); begin = text.find('\n', begin) + 1) EXPECT_EQ(text[begin], '#');
}

TEST(AcceptExports, PrometheusHasAVerdictForEachNode) {
  const std::string text = accept_prometheus(with_a_slow_node());
  EXPECT_THAT(text, HasSubstr("tutti_accept_verdict{node=\"node1\",stage=\"\",class=\"\",verdict=\"PASS\"} 1\n"));
  EXPECT_THAT(text,
              HasSubstr("tutti_accept_verdict{node=\"node2\",stage=\"\",class=\"nic-out\",verdict=\"FAIL\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("tutti_accept_of_fleet_ratio{node=\"node1\",direction=\"out\"} 1.002"));
}

TEST(AcceptExports, JsonHasTheSentenceAndNumbers) {
  const auto document = nlohmann::json::parse(accept_json(with_a_slow_node()));
  EXPECT_EQ(document.at("verdict"), "FAIL");
  EXPECT_EQ(document.at("findings").at(0).at("class"), "nic-out");
  EXPECT_NEAR(document.at("findings").at(0).at("of_fleet").get<double>(), -0.1, 1e-12);
  EXPECT_EQ(document.at("nodes").at(3).at("verdict"), "ERROR");
  EXPECT_NEAR(document.at("fleet").at("near_bytes_per_second").get<double>(), 11.6e9, 1);
  EXPECT_TRUE(document.at("init").is_null());
}

TEST(AcceptExports, TimesOfInitNameTheSlowestGroup) {
  AcceptReport report = healthy(6);
  EXPECT_THAT(accept_table(report), Not(HasSubstr("# init")));
  report.init = {.groups = 3, .median_s = 0.21, .most_s = 0.9, .slowest = {2, 5}};
  EXPECT_EQ(nlohmann::json::parse(accept_json(report)).at("init"),
            nlohmann::json::parse(R"({"groups":3,"median_s":0.21,"most_s":0.9,"slowest":["node3","node6"]})"));
  const std::string line =
      "# init, from the start of the processes to their first collective: 0.21 s (median of 3 groups), ";
  EXPECT_THAT(accept_table(report), HasSubstr(line + "0.90 s at most: node3, node6\n"));
  report.init.slowest = {0, 1, 2, 3, 4, 5};
  EXPECT_THAT(accept_table(report), HasSubstr("0.90 s at most: node1, node2, node3, node4 and 2 more\n"));
}

TEST(AcceptTable, HasALineForEachNodeOfAFew) {
  const std::string text = accept_table(with_a_slow_node());
  EXPECT_THAT(text, ::testing::StartsWith("# tutti accept: FAIL. node2 sends 10.0 %"));
  EXPECT_THAT(text, HasSubstr("\n  node1  PASS              -   +0.2   -0.1        -  node2   -1.0   A\n"));
  EXPECT_THAT(text, HasSubstr("\n  node2  FAIL nic-out "));
  EXPECT_THAT(text, HasSubstr("\n# fleet: 11.6 GB/s within a leaf, 10.5 GB/s between leaves, 2.3 us; spread of nodes "
                              "0.8 %, of repeats 1.9 %. Valid until "));
}

TEST(AcceptTable, FoldsManyNodes) {
  AcceptReport report = healthy(64);
  EXPECT_THAT(accept_table(report), Not(HasSubstr("node17")));
  add(report, {.what = Class::nic_out, .first = 16, .judgement = slow(), .tests = 24, .visits = 2});
  add(report, {.what = Class::link, .first = 21, .second = 39, .judgement = slow(), .tests = 32, .visits = 2});
  const std::string text = accept_table(report);
  EXPECT_THAT(text,
              HasSubstr("\n  node17           FAIL nic-out          -10.0 %  -11.0 .. -9.0           24      2\n"));
  EXPECT_THAT(text, HasSubstr("\n  node22 - node40  FAIL link "));
  EXPECT_THAT(text, HasSubstr("\n  A           32      31       +0.2      -0.1\n"));
}

}  // namespace
}  // namespace tutti::harness::accept
