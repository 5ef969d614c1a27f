// SPDX-License-Identifier: Apache-2.0
#include "harness/launch/children.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/launch/finding.h"
#include "harness/process/start_command.h"

namespace tutti::harness::launch {
namespace {

TEST(CommandLog, SignalIsFoundWithItsRank) {
  const auto verdict = parse_command_verdict(
      "Primary job  terminated normally, but 1 process returned\n"
      "mpirun noticed that process rank 12 with PID 0 on node vm exited on signal 9 (Killed).\n");
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->rank, 12);
  EXPECT_EQ(verdict->how, Ending::killed);
  EXPECT_EQ(verdict->number, 9);
}

TEST(CommandLog, ExitCodeIsFoundWithItsRank) {
  const auto verdict = parse_command_verdict("\n  Process name: [[10250,1],7]\n  Exit code:    3\n-----\n");
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->rank, 7);
  EXPECT_EQ(verdict->how, Ending::exited);
  EXPECT_EQ(verdict->number, 3);
}

TEST(CommandLog, OtherTextIsNoVerdict) {
  EXPECT_FALSE(parse_command_verdict("").has_value());
  EXPECT_FALSE(parse_command_verdict("There are not enough slots").has_value());
}

TEST(CommandLog, RanksAreListedAsTheyEnd) {
  const std::string line = "[vm:1] [[4653,0],0] odls:wait_local_proc child process [[4653,1],";
  EXPECT_THAT(parse_command_ends(line + "11] pid 7 terminated\nother\n" + line + "0] pid 8 terminated\n"),
              testing::ElementsAre(11, 0));
}

TEST(CommandLog, HydraTellsTheProcessThatEnded) {
  const std::string words =
      "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 4734 RUNNING AT vm\n=   EXIT CODE: 9\n";
  const auto exited = parse_command_verdict(words);
  ASSERT_TRUE(exited.has_value());
  EXPECT_EQ(exited->pid, 4734);
  EXPECT_EQ(exited->rank, -1);
  EXPECT_EQ(exited->how, Ending::exited);
  EXPECT_EQ(exited->number, 9);
  const auto killed =
      parse_command_verdict(words + "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)\n");
  ASSERT_TRUE(killed.has_value());
  EXPECT_EQ(killed->how, Ending::killed);
  EXPECT_EQ(killed->number, 9);
}

TEST(CommandLog, IntelsHydraTellsTheRankToo) {
  const auto verdict = parse_command_verdict(
      "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   RANK 3 PID 77 RUNNING AT vm\n"
      "=   KILLED BY SIGNAL: 11 (Segmentation fault)\n");
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->rank, 3);
  EXPECT_EQ(verdict->how, Ending::killed);
  EXPECT_EQ(verdict->number, 11);
}

TEST(CommandLog, TheFirstOfSeveralEndsIsTheOneThatCounts) {
  const std::string begin = "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n";
  const auto verdict = parse_command_verdict(begin + "=   RANK 0 PID 70 RUNNING AT vm\n=   EXIT STATUS: 3\n" + begin +
                                             "=   RANK 1 PID 71 RUNNING AT vm\n=   KILLED BY SIGNAL: 9 (Killed)\n");
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->rank, 0);
  EXPECT_EQ(verdict->how, Ending::exited);
  EXPECT_EQ(verdict->number, 3);
}

TEST(StartCommand, ValuesStandInItsPlaces) {
  const auto command = parse_start_command(
      R"({"command": ["/bin/run", "-n", "{ranks}", "--in={directory}/x"], "environment": {"YIELD": "{crowded}"}})");
  ASSERT_TRUE(command.is_ok()) << command.status().message();
  const StartCommand there = filled(command.value(), {.ranks = 12, .directory = "/d", .is_crowded = true});
  EXPECT_EQ(there.words, (std::vector<std::string>{"/bin/run", "-n", "12", "--in=/d/x"}));
  EXPECT_EQ(there.environment, std::vector<std::string>{"YIELD=1"});
  EXPECT_EQ(filled(command.value(), {.ranks = 1}).environment, std::vector<std::string>{"YIELD=0"});
}

TEST(StartCommand, WhatIsNoneIsNamed) {
  for (const auto& [text, what] : {std::pair{"", "a JSON object"}, std::pair{R"({"command": []})", "\"command\""},
                                   std::pair{R"({"command": [7]})", "strings in \"command\""},
                                   std::pair{R"({"command": ["x"], "environment": {"A": 1}})", "\"environment\""}}) {
    const auto command = parse_start_command(text);
    ASSERT_FALSE(command.is_ok()) << text;
    EXPECT_THAT(command.status().message(), testing::HasSubstr(what));
  }
}

TEST(Finding, KillExplainsComplaintsAndLostConnectionsButNotAnEarlierKill) {
  const Finding kill = killed_by(2, "rank 2", 9);
  Finding complaint;
  complaint.how = Ending::said_error;
  complaint.rank = 0;
  EXPECT_TRUE(outweighs(kill, complaint));
  EXPECT_TRUE(outweighs(kill, lost_connection(1, "rank 1 (pid 5)")));
  EXPECT_FALSE(outweighs(killed_by(1, "rank 1", 9), kill));
  EXPECT_FALSE(outweighs(complaint, kill));
}

TEST(Finding, WhatIsKnownOfARankExplainsThatOthersHaveHeardOfIt) {
  Finding heard, reason;
  heard.how = reason.how = Ending::said_error;
  heard.rank = 0;
  reason.rank = 2;
  reason.code = Code::mismatch;
  EXPECT_TRUE(outweighs(reason, heard));
  EXPECT_FALSE(outweighs(heard, reason));
  EXPECT_TRUE(outweighs(lost_connection(2, "rank 2 (pid 5)"), heard));
  EXPECT_FALSE(outweighs(heard, lost_connection(2, "rank 2 (pid 5)")));
  EXPECT_FALSE(outweighs(lost_connection(0, "rank 0 (pid 4)"), heard));
  EXPECT_TRUE(outweighs(killed_by(3, "rank 3 (pid 5)", 9), reason));
}

TEST(Finding, ExitExplainsOnlyTheSameRank) {
  const Finding exit = exited_with(1, "rank 1", 3);
  EXPECT_TRUE(outweighs(exit, lost_connection(1, "rank 1 (pid 5)")));
  EXPECT_FALSE(outweighs(exit, lost_connection(2, "rank 2 (pid 5)")));
  Finding said;
  said.how = Ending::said_error;
  said.rank = 1;
  EXPECT_FALSE(outweighs(exit, said));
  EXPECT_TRUE(outweighs(said, exit));
}

}  // namespace
}  // namespace tutti::harness::launch
