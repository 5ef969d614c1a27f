// SPDX-License-Identifier: Apache-2.0
#include "harness/launch/children.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/launch/finding.h"
#include "harness/launch/spawn.h"

namespace tutti::harness::launch {
namespace {

TEST(MpirunLog, SignalIsFoundWithItsRank) {
  const auto verdict = parse_mpirun_verdict(
      "Primary job  terminated normally, but 1 process returned\n"
      "mpirun noticed that process rank 12 with PID 0 on node vm exited on signal 9 (Killed).\n");
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->rank, 12);
  EXPECT_EQ(verdict->how, Ending::killed);
  EXPECT_EQ(verdict->number, 9);
}

TEST(MpirunLog, ExitCodeIsFoundWithItsRank) {
  const auto verdict = parse_mpirun_verdict("\n  Process name: [[10250,1],7]\n  Exit code:    3\n-----\n");
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->rank, 7);
  EXPECT_EQ(verdict->how, Ending::exited);
  EXPECT_EQ(verdict->number, 3);
}

TEST(MpirunLog, OtherTextIsNoVerdict) {
  EXPECT_FALSE(parse_mpirun_verdict("").has_value());
  EXPECT_FALSE(parse_mpirun_verdict("There are not enough slots").has_value());
}

TEST(MpirunLog, RanksAreListedAsTheyEnd) {
  const std::string line = "[vm:1] [[4653,0],0] odls:wait_local_proc child process [[4653,1],";
  EXPECT_THAT(parse_mpirun_ends(line + "11] pid 7 terminated\nother\n" + line + "0] pid 8 terminated\n"),
              testing::ElementsAre(11, 0));
}

TEST(MpirunCommand, RanksYieldOnlyWhereTheyOutnumberCores) {
  Job job;
  job.ranks = 4;
  job.program = "/bin/rank";
  job.arguments = {"mode", "x"};
  const auto command = mpirun_command(job, "/dev/shm/d", 4);
  EXPECT_EQ(command.front(), "mpirun");
  EXPECT_EQ(std::vector<std::string>(command.end() - 3, command.end()),
            (std::vector<std::string>{"/bin/rank", "mode", "x"}));
  const auto value_of = [](const std::vector<std::string>& all, const std::string& name) {
    const auto at = std::find(all.begin(), all.end(), name);
    return at == all.end() ? std::string("missing") : *(at + 1);
  };
  EXPECT_EQ(value_of(command, "-np"), "4");
  EXPECT_EQ(value_of(command, "mpi_yield_when_idle"), "0");
  EXPECT_EQ(value_of(command, "btl_vader_backing_directory"), "/dev/shm/d");
  EXPECT_EQ(value_of(command, "shmem"), "mmap");
  EXPECT_EQ(value_of(mpirun_command(job, "/dev/shm/d", 3), "mpi_yield_when_idle"), "1");
}

TEST(Finding, KillExplainsComplaintsAndLostConnectionsButNotAnEarlierKill) {
  const Finding kill = killed_by(2, "rank 2", 9);
  Finding complaint;
  complaint.how = Ending::said_error;
  complaint.rank = 0;
  EXPECT_TRUE(outweighs(kill, complaint));
  EXPECT_TRUE(outweighs(kill, lost_connection(1, 5)));
  EXPECT_FALSE(outweighs(killed_by(1, "rank 1", 9), kill));
  EXPECT_FALSE(outweighs(complaint, kill));
}

TEST(Finding, ExitExplainsOnlyTheSameRank) {
  const Finding exit = exited_with(1, "rank 1", 3);
  EXPECT_TRUE(outweighs(exit, lost_connection(1, 5)));
  EXPECT_FALSE(outweighs(exit, lost_connection(2, 5)));
  Finding said;
  said.how = Ending::said_error;
  said.rank = 1;
  EXPECT_FALSE(outweighs(exit, said));
  EXPECT_TRUE(outweighs(said, exit));
}

}  // namespace
}  // namespace tutti::harness::launch
