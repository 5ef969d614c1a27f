// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/exclusions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/unit/harness/accept/reports.h"

namespace tutti::harness::accept {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(AcceptExclusions, TheHostsFileHasThoseThatPassed) {
  EXPECT_EQ(hosts_file(healthy(2), "").substr(hosts_file(healthy(2), "").find('\n') + 1), "node1\nnode2\n");
  const std::string text = hosts_file(with_a_slow_node(), "");
  EXPECT_THAT(text,
              HasSubstr("\nnode1\nnode3\n# node2  FAIL nic-out -10.0% (-11.0..-9.0)\n# node4  ERROR ssh exit 255 "));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(AcceptExclusions, SlurmGetsAnOptionAndCommandsInComments) {
  EXPECT_EQ(slurm_file(healthy(2), "", ""), "\n# no node is to be excluded\n");
  const std::string text = slurm_file(with_a_slow_node(), "accept.html", "");
  EXPECT_THAT(text, ::testing::StartsWith("--exclude=node2\n# "));
  EXPECT_THAT(
      text,
      HasSubstr(
          "# scontrol update NodeName=node2 State=DRAIN "
          "Reason=\"tutti:nic-out -10.0% (-11.0..-9.0) 2023-11-14T22:23Z accept.html\"  # stage pairs, margin 5 %\n"));
  for (std::size_t begin = text.find('\n') + 1; begin < text.size(); begin = text.find('\n', begin) + 1) {
    EXPECT_EQ(text[begin], '#') << "nothing but the option is no comment: " << text.substr(begin);
  }
}

/// What an earlier run proposed to drain.
std::string drained(const std::string& name, const std::string& reason, const std::string& where = "pairs") {
  return fmt::format("# scontrol update NodeName={} State=DRAIN Reason=\"{}\"  # stage {}, margin 5 %\n", name, reason,
                     where);
}

AcceptReport healthy_in_pairs() {
  AcceptReport report = healthy(4);
  report.stages = {{.name = "pairs"}, {.name = "shifts", .left_out = "it is not asked for"}};
  return report;
}

TEST(AcceptExclusions, SlurmMayResumeWhatAnEarlierRunWantedToDrain) {
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
  EXPECT_EQ(slurm_file(healthy_in_pairs(), "", old), resumed);
  EXPECT_EQ(slurm_file(healthy_in_pairs(), "", resumed), "\n# no node is to be excluded\n") << "it is proposed once";
  EXPECT_EQ(slurm_file(healthy_in_pairs(), "", drained("node1", "tutti:dead").substr(0, 60)),
            "\n# no node is to be excluded\n")
      << "the end of the line is missing";
}

TEST(AcceptExclusions, SlurmHasAnotherReasonIfTheNodeFailsAgain) {
  const std::string text = slurm_file(with_a_slow_node(), "", drained("node2", "tutti:dead 2023-11-13T22:23Z"));
  EXPECT_THAT(text, HasSubstr(drained("node2", "tutti:nic-out -10.0% (-11.0..-9.0) 2023-11-14T22:23Z")));
  EXPECT_THAT(text, Not(HasSubstr("tutti:dead")));
}

TEST(AcceptExclusions, WhatAnEarlierRunFoundStaysUntilARunThatLooksForItDoesNotFindIt) {
  const std::string line = drained("node4", "tutti:nic-in -20.0% 2023-11-13T22:23Z");
  const auto is_kept = [](const AcceptReport& report, const std::string& old) {
    const std::string text = slurm_file(report, "", old);
    const bool is_excluded = text.starts_with("--exclude=node4\n");
    EXPECT_EQ(hosts_file(report, old).find("\nnode4\n") == std::string::npos, is_excluded) << text;
    EXPECT_EQ(text.find(old) != std::string::npos, is_excluded) << text;
    EXPECT_EQ(text.find("State=RESUME") == std::string::npos, is_excluded) << text;
    return is_excluded;
  };
  EXPECT_FALSE(is_kept(healthy_in_pairs(), line));
  AcceptReport report = healthy_in_pairs();
  report.absences[3] = "ssh exit 255";
  EXPECT_TRUE(is_kept(report, line)) << "it is not there";
  report = healthy_in_pairs();
  report.findings.is_interrupted = true;
  EXPECT_TRUE(is_kept(report, line)) << "the run was cut off";
  report = healthy_in_pairs();
  report.limits.margin = 0.4;
  EXPECT_TRUE(is_kept(report, line)) << "a larger margin";
  EXPECT_TRUE(is_kept(healthy_in_pairs(), drained("node4", "tutti:nic -20%", "shifts"))) << "a stage that is left out";
  EXPECT_TRUE(is_kept(healthy_in_pairs(), drained("node4", "tutti:nic -20%", "pairs, rail ib1"))) << "another rail";
  EXPECT_TRUE(is_kept(healthy_in_pairs(), drained("node4", "tutti:nic -20%", "pears"))) << "no stage";
}

TEST(AcceptExclusions, NoLineOfAnOldSlurmFileIsTakenOverAsItIs) {
  const std::string old = drained("node1", "tutti:\x1b[1m\" $(reboot) `reboot` \\\r\xe2\x80\xa8") +
                          "--exclude=node3\n" + "reboot\n" + drained("node4", "tutti:x\"; reboot; \"");
  AcceptReport report = healthy_in_pairs();
  report.absences[3] = "ssh exit 255";
  const std::string text = slurm_file(report, "", old);
  EXPECT_THAT(
      text, HasSubstr("# node1 passed. It was to be drained for \"tutti:_x1b[1m_ _(reboot) _reboot_ __x0d_u2028\": "));
  EXPECT_THAT(text, HasSubstr(drained("node4", "tutti:x_; reboot; _")));
  EXPECT_THAT(text, ::testing::StartsWith("--exclude=node4\n"));
  for (std::size_t begin = text.find('\n') + 1; begin < text.size(); begin = text.find('\n', begin) + 1)
    EXPECT_EQ(text[begin], '#');
}

}  // namespace
}  // namespace tutti::harness::accept
