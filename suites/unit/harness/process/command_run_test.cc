// SPDX-License-Identifier: Apache-2.0
#include "harness/process/command_run.h"

#include <csignal>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::process {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST(RunCommand, TellsHowItEndedAndWhatItSaid) {
  const Interrupts interrupts;
  const auto ended = run_command({"sh", "-c", "echo one; echo two >&2; exit 3"}, 60s, interrupts);
  ASSERT_TRUE(ended.is_ok()) << ended.status().message();
  EXPECT_EQ(ended.value().exit_code, 3);
  EXPECT_EQ(ended.value().output, "one\n");
  EXPECT_EQ(ended.value().errors, "two\n");
  EXPECT_EQ(ended.value().last_words(), "two");
  EXPECT_EQ(run_command({"sh", "-c", "echo one; echo two"}, 60s, interrupts).value().last_words(), "two");
  const std::string complains = "echo '[1/2] one' >&2; echo 'tutti: rank 1 is stopped' >&2; echo '  rank 0: idle' >&2";
  EXPECT_EQ(run_command({"sh", "-c", complains}, 60s, interrupts).value().last_words(), "tutti: rank 1 is stopped");
  const auto killed = run_command({"sh", "-c", "kill -9 $$"}, 60s, interrupts);
  ASSERT_TRUE(killed.is_ok());
  EXPECT_EQ(killed.value().exit_code, 128 + SIGKILL);
  EXPECT_EQ(killed.value().last_words(), "it said nothing");
}

TEST(RunCommand, IsEndedAtItsLimit) {
  const Interrupts interrupts;
  const auto late = run_command({"sleep", "100"}, 1s, interrupts);
  EXPECT_EQ(late.status().code(), Code::timeout);
  EXPECT_EQ(late.status().message(), "'sleep 100' did not end within 1 s");
  EXPECT_EQ(run_command({"/no/such/program"}, 1s, interrupts).status().code(), Code::unavailable);
}

TEST(RunCommand, SaysOnceThatItTakesLong) {
  const Interrupts interrupts;
  std::vector<std::string> states;
  const Delay delay{.after = 20ms, .tell = [&](pid_t, const std::string& state) { states.push_back(state); }};
  const auto stopped = run_command({"sh", "-c", "kill -STOP $$"}, 200ms, interrupts, {}, delay);
  EXPECT_EQ(stopped.status().code(), Code::timeout);
  EXPECT_THAT(states, testing::ElementsAre(HasSubstr("stopped (state T)")));
  EXPECT_TRUE(run_command({"true"}, 60s, interrupts, {}, {.after = 30s, .tell = delay.tell}).is_ok());
  EXPECT_EQ(states.size(), 1U);
}

TEST(RunCommand, EndsWithThisProcess) {
  const Interrupts interrupts;
  ASSERT_EQ(std::raise(SIGTERM), 0);
  EXPECT_EQ(run_command({"sleep", "100"}, 60s, interrupts).status().code(), Code::aborted);
}

}  // namespace
}  // namespace tutti::harness::process
