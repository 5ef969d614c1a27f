// SPDX-License-Identifier: Apache-2.0
// A process that comes to a job's meeting and is no part of the job is refused by name. Threads stand for the
// processes.
#include "harness/hosts/joined_job.h"

#include <atomic>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::hosts {
namespace {

using testing::AllOf;
using testing::HasSubstr;

JoinRequest request_of(int processes) {
  static std::atomic<int> number{0};
  return {.world = {.process = 0,
                    .processes = processes,
                    .meeting = fmt::format("tutti-joined-job-test-{}-{}", ::getpid(), number.fetch_add(1))},
          .arguments = "-n 5",
          .timeout = std::chrono::seconds(20)};
}

/// What process 0 gets, to which another one comes that says `text` of itself.
Status joined_by(const std::string& text) {
  const JoinRequest request = request_of(2);
  std::thread other([&] {
    World world = request.world;
    world.process = 1;
    const auto met = meet({.world = world, .text = text, .timeout = request.timeout});
    EXPECT_EQ(met.status().code(), Code::mismatch) << "it is told so too";
  });
  auto job = JoinedJob::join(request);
  other.join();
  return job.status();
}

TEST(JoinedJob, AnotherProgramIsRefusedByName) {
  const std::string is_another = fmt::format("rank 1 (pid {}) is another program: what it says of itself", ::getpid());
  for (const char* text : {"hello", "[]", R"({"arguments":7})", R"({"arguments":"-n 5","hostname":[]})",
                           R"({"arguments":"-n 5","cores":"all"})"}) {
    const Status status = joined_by(text);
    EXPECT_EQ(status.code(), Code::mismatch) << text;
    EXPECT_THAT(status.message(), HasSubstr(is_another)) << text;
  }
}

TEST(JoinedJob, OtherArgumentsAreShownBesideThoseOfRank0) {
  EXPECT_THAT(joined_by(R"({"arguments":"-n 6"})").message(),
              AllOf(HasSubstr("rank 1 (pid "), HasSubstr("was started with '-n 6', rank 0 with '-n 5'")));
}

TEST(JoinedJob, ArgumentsNeedBeNoText) {
  JoinRequest request = request_of(1);
  request.arguments = "--json \xff.json";
  const auto job = JoinedJob::join(request);
  ASSERT_TRUE(job.is_ok()) << job.status().message();
  ASSERT_EQ(job.value()->participants().size(), 1U);
  EXPECT_EQ(job.value()->participants()[0].pid, ::getpid());
  EXPECT_FALSE(job.value()->participants()[0].cores.empty());
}

}  // namespace
}  // namespace tutti::harness::hosts
