// SPDX-License-Identifier: Apache-2.0
#include "harness/process/stacks.h"

#include <chrono>
#include <string>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::process {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST(Stacks, HaveNoAddressesAndNoNumbersOfProcesses) {
  EXPECT_EQ(
      without_addresses("PID 17 - process\nTID 17:\n#0  0x00007f3ecd0eb6f5 clock_nanosleep\n#1  0x000055d6d4bd13c7\n"
                        "TID 18:\n#0  0x00007f3ecd0eb6f6 - 1 poll(int, int)\n"),
      "thread 1\n  #0 clock_nanosleep\n  #1 ?\nthread 2\n  #0 - 1 poll(int, int)\n");
  EXPECT_EQ(without_addresses(""), "");
}

TEST(Stacks, ThatAreAlikeStandOnceAndMostRanksComeFirst) {
  const std::vector<RankStack> stacks = {{0, "a\n"}, {1, "b\n"}, {2, "b\n"}, {3, "c\n"}};
  EXPECT_EQ(grouped(stacks), "ranks 1, 2\nb\n\nrank 0\na\n\nrank 3\nc\n");
  EXPECT_EQ(grouped({}), "");
}

TEST(Stacks, AreReadInTimeOrSayWhyNot) {
  const std::vector<pid_t> pids = {::getpid(), 0};
  const std::vector<RankStack> stacks = stacks_of(pids, 10s);
  if (stacks.empty()) GTEST_SKIP() << "there is no eu-stack";
  ASSERT_EQ(stacks.size(), 2U);
  EXPECT_THAT(stacks[0].text, HasSubstr("thread 1\n  #0 "));
  EXPECT_EQ(stacks[1].text, "its process is not known\n");
  EXPECT_EQ(stacks_of(pids, 0ms)[0].text, "not read: there was no more time\n");
}

}  // namespace
}  // namespace tutti::harness::process
