// SPDX-License-Identifier: Apache-2.0
// Hosts that come late or never, through agents that are scripts.
#include "harness/hosts/hosts_starter.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/launch/launch.h"

namespace tutti::harness {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

/// What `tutti --version` says of its build.
std::string build_of_program() {
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(TUTTI_PROGRAM " --version", "r"), ::pclose);
  std::string said;
  for (int c = 0; (c = std::fgetc(pipe.get())) != EOF;) said += static_cast<char>(c);
  return said.substr(0, said.find(';'));
}

class Silent : public Listener {
 public:
  void on_message(int /*rank*/, std::string_view /*type*/, std::string_view /*text*/) override {}
};

class LateHosts : public testing::Test {
 protected:
  LateHosts() {
    std::string name = testing::TempDir() + "tutti-agent-XXXXXX";
    agent_ = ::mkdtemp(name.data());
    agent_ /= "agent";
  }
  ~LateHosts() override { std::filesystem::remove_all(agent_.parent_path()); }
  LateHosts(const LateHosts&) = delete;
  LateHosts& operator=(const LateHosts&) = delete;

  Outcome run(const std::string& agent, const std::vector<std::string>& hosts) {
    std::ofstream(agent_) << "#!/bin/sh\n" << agent;
    std::filesystem::permissions(agent_, std::filesystem::perms::owner_all);
    PlacedJob job;
    job.ranks = static_cast<int>(hosts.size());
    job.across =
        JobAcross{.hosts = {}, .agent = agent_.string(), .interface = "127.0.0.1", .build = build_of_program()};
    for (const std::string& host : hosts) job.across->hosts.push_back({.name = host, .ranks = 1, .domain_bytes = 0});
    job.program = TUTTI_PROGRAM;
    job.arguments = {"rank"};
    job.timeout = 6s;  // so silence of 3 s is too long
    job.connect_timeout = 4s;
    Silent listener;
    const Result<Outcome> outcome = launch_placed(job, listener);
    EXPECT_TRUE(outcome.is_ok()) << outcome.status().message();
    return outcome.is_ok() ? outcome.value() : Outcome();
  }

  std::filesystem::path agent_;
};

TEST_F(LateHosts, WhoHasNotComeIsNamedWithTheWordsOfItsAgentAndNobodyElse) {
  const Outcome outcome =
      run("case $1 in\n"
          "  away) echo 'asks for a password'; echo; exec sleep 60 ;;\n"
          "  mute) exec sleep 60 ;;\n"
          "esac\n"
          "shift\n"
          "exec \"$@\"\n",
          {"away", "healthy", "mute"});
  EXPECT_EQ(outcome.how, Ending::said_error);
  EXPECT_EQ(outcome.failure.code(), Code::unavailable);
  EXPECT_EQ(outcome.failed_rank, 0);
  EXPECT_THAT(outcome.failure.message(),
              AllOf(MatchesRegex("hosts away \\(rank 0\\) and mute \\(rank 2\\) have not come to .* within 4 s: .*"),
                    HasSubstr("agent away` said: asks for a password; "), HasSubstr("agent mute` has said nothing"),
                    Not(HasSubstr("healthy"))));
}

TEST_F(LateHosts, TheLastWordsOfAnAgentThatEndsAreInTheError) {
  const Outcome outcome = run("echo a banner\necho no route to $1 >&2\nexit 255\n", {"away"});
  EXPECT_EQ(outcome.failure.code(), Code::unavailable);
  EXPECT_THAT(outcome.failure.message(),
              MatchesRegex("host away \\(rank 0\\) is lost: `.*agent away` exited with code 255 before it had come: no "
                           "route to away"));
  EXPECT_THAT(outcome.log_tail, HasSubstr("a banner\nno route to away"));
}

}  // namespace
}  // namespace tutti::harness
