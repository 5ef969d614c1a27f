// SPDX-License-Identifier: Apache-2.0
#include "harness/gate/program_run.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::gate {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

/// What a shell does as a program of which one row comes.
const std::string kWriteARow =
    "while [ \"$1\" != --csv ]; do shift; done; printf 'case,time_median\\nx,2.5\\n' > \"$2\"; ";

TEST(RunProgram, GivesTheRowsAsFarAsTheyCame) {
  const Interrupts interrupts;
  const auto run = run_program({"sh", "-c", kWriteARow + "exit 5", "tutti"}, 60s, interrupts);
  ASSERT_TRUE(run.is_ok()) << run.status().message();
  EXPECT_EQ(run.value().exit_code, 5);
  ASSERT_EQ(run.value().rows.size(), 1U);
  EXPECT_EQ(run.value().rows[0].time_median, 2.5);
}

TEST(RunProgram, OneThatHangsIsLateAndLeavesTheRowsThatItHad) {
  const Interrupts interrupts;
  const auto run = run_program({"sh", "-c", kWriteARow + "exec sleep 100", "tutti"}, 1s, interrupts);
  ASSERT_TRUE(run.is_ok()) << run.status().message();
  EXPECT_EQ(run.value().late, "did not end within 1 s and was ended");
  EXPECT_EQ(run.value().rows.size(), 1U);
  EXPECT_EQ(run_program({"/no/such/program"}, 1s, interrupts).status().code(), Code::unavailable);
}

TEST(ProgramOfBuild, IsLookedForWhereBuildsAndInstalledTreesHaveIt) {
  const std::filesystem::path folder = testing::TempDir() + "tutti_build_" + std::to_string(getpid());
  std::filesystem::create_directories(folder / "bin");
  const std::string message = program_of_build(folder).status().message();
  EXPECT_THAT(message, HasSubstr("no build of tutti"));
  EXPECT_THAT(message, HasSubstr((folder / "bin/tutti").string()));
  std::filesystem::create_symlink("/bin/true", folder / "bin/tutti");
  const auto program = program_of_build(folder);
  ASSERT_TRUE(program.is_ok()) << program.status().message();
  EXPECT_EQ(program.value(), (folder / "bin/tutti").string());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tutti::harness::gate
