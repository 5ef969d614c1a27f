// SPDX-License-Identifier: Apache-2.0
// A start command that goes on after one of its ranks has ended: the launcher finds out by itself. A shell stands for
// it. It either leaves its dead unread, as an mpirun does that hangs, or reads how they ended and goes on.
#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/launch/launch.h"

namespace tutti::harness::launch {
namespace {

using namespace std::chrono_literals;
using testing::ContainsRegex;

class Silent : public Listener {
 public:
  void on_message(int, std::string_view, std::string_view) override {}
  [[nodiscard]] std::string case_name(std::uint32_t) const override { return "a case"; }
};

constexpr const char* kStartTwo =
    R"(for rank in 0 1; do OMPI_COMM_WORLD_RANK=$rank setsid sh -c "$BEFORE"' exec "$@"' sh "$@" & done; )";

/// Two ranks that do what `arguments` say, after the shell's words `before`. `after`: what the shell then does.
Outcome run(const std::string& before, const std::string& after, std::vector<std::string> arguments) {
  Job job;
  job.ranks = 2;
  job.program = TUTTI_TEST_RANK;
  job.arguments = std::move(arguments);
  job.start = StartCommand{.words = {"sh", "-c", kStartTwo + after, "sh"}, .environment = {"BEFORE=" + before}};
  Silent listener;
  Result<Outcome> outcome = launch_job(job, listener);
  EXPECT_TRUE(outcome.is_ok()) << outcome.status().message();
  return outcome.is_ok() ? outcome.value() : Outcome();
}

const char* const kDie = "[ $OMPI_COMM_WORLD_RANK = 0 ] || { sleep 1; kill -9 $$; };";
const char* const kLeaveUnread = "exec sleep 1000";
const char* const kReadOne = "wait $!; exec sleep 1000";

TEST(CarelessCommand, ARankThatDiesWhileItStartsIsNamedWithItsSignal) {
  const Outcome outcome = run(kDie, kLeaveUnread, {"idle", "1"});
  EXPECT_EQ(outcome.failed_rank, 1);
  EXPECT_EQ(outcome.how, Ending::killed);
  EXPECT_THAT(outcome.failure.message(),
              ContainsRegex("^rank 1 \\(pid [0-9]+\\) was killed by signal 9 .*; mpirun \\(pid [0-9]+\\) goes on"));
}

TEST(CarelessCommand, ARankWhoseEndItHasReadIsNamedToo) {
  const Outcome outcome = run(kDie, kReadOne, {"idle", "1"});
  EXPECT_EQ(outcome.failed_rank, 1);
  EXPECT_THAT(outcome.failure.message(), ContainsRegex("^rank 1 \\(pid [0-9]+\\) has ended while it started; mpirun"));
}

TEST(CarelessCommand, TheExitCodeOfARankThatHadComeIsTold) {
  const Outcome outcome = run("", kLeaveUnread, {"exit", "1"});
  EXPECT_EQ(outcome.failed_rank, 1);
  EXPECT_EQ(outcome.number, 3);
  EXPECT_THAT(outcome.failure.message(), ContainsRegex("^rank 1 \\(pid [0-9]+\\) exited with code 3"));
}

TEST(CarelessCommand, WhatItSaidOfARankCountsIfItDiesOnItsWayDown) {
  const std::string says = R"(wait $!; printf '  Process name: [[11737,1],1]\n  Exit code:    15\n'; kill -PIPE $$)";
  const Outcome outcome = run(kDie, says, {"idle", "1"});
  EXPECT_EQ(outcome.failed_rank, 1);
  EXPECT_EQ(outcome.number, 15);
  EXPECT_THAT(outcome.failure.message(), testing::HasSubstr("exited with code 15"));
}

TEST(CarelessCommand, ARankThatComesLateIsWaitedFor) {
  const Outcome outcome = run("[ $OMPI_COMM_WORLD_RANK = 0 ] || sleep 4;", "wait", {"place"});
  EXPECT_TRUE(outcome.ok) << outcome.failure.message();
}

}  // namespace
}  // namespace tutti::harness::launch
