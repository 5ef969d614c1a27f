// SPDX-License-Identifier: Apache-2.0
// A crew whose agent runs the command here: hosts that never come, and groups that fail one beside the other.
#include "harness/hosts/crew.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::hosts {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

/// What `tutti --version` says of its build.
std::string build_of_crew_program() {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(TUTTI_PROGRAM " --version", "r"), ::pclose);
  std::string said;
  for (int c = 0; (c = std::fgetc(pipe.get())) != EOF;) said += static_cast<char>(c);
  return said.substr(0, said.find(';'));
}

class Ignores : public Listener {
 public:
  void on_message(int /*rank*/, std::string_view /*type*/, std::string_view /*text*/) override {}
};

class Crews : public testing::Test {
 protected:
  Crews() {
    std::string name = testing::TempDir() + "tutti-crew-XXXXXX";
    agent_ = ::mkdtemp(name.data());
    agent_ /= "agent";
    std::ofstream(agent_) << "#!/bin/sh\n[ $1 = silent ] && exec sleep 60\nshift\nexec \"$@\"\n";
    std::filesystem::permissions(agent_, std::filesystem::perms::owner_all);
  }
  ~Crews() override {
    crew_.end();
    std::filesystem::remove_all(agent_.parent_path());
  }
  Crews(const Crews&) = delete;
  Crews& operator=(const Crews&) = delete;

  void start(const std::vector<std::string>& hosts, std::chrono::milliseconds patience) {
    const Status started = crew_.start({.hosts = hosts,
                                        .agent = agent_.string(),
                                        .interface = "127.0.0.1",
                                        .build = build_of_crew_program(),
                                        .program = TUTTI_PROGRAM},
                                       patience);
    ASSERT_TRUE(started.is_ok()) << started.message();
  }

  /// Its ranks, one a host, cannot read what they have to do.
  CrewGroup failing(const std::vector<int>& hosts) {
    CrewGroup group{.job = {}, .members = {}, .listener = &listener_};
    group.job.ranks = static_cast<int>(hosts.size());
    group.job.arguments = {"rank"};
    group.job.payload = "no job";
    for (const int host : hosts) group.members.push_back({.host = host});
    return group;
  }

  std::filesystem::path agent_;
  Ignores listener_;
  Crew crew_;
};

TEST_F(Crews, NameTheHostThatNeverComesAndGoOnWithTheOthers) {
  start({"a", "silent", "b"}, 5s);
  EXPECT_FALSE(crew_.loss(0).has_value());
  EXPECT_FALSE(crew_.loss(2).has_value());
  ASSERT_TRUE(crew_.loss(1).has_value());
  EXPECT_THAT(crew_.loss(1)->message(),
              AllOf(StartsWith("it has not come to 127.0.0.1:"), HasSubstr("silent` has said nothing")));
  const auto ended = crew_.run({failing({0, 1}), failing({2})});
  EXPECT_EQ(ended[0].how, Ending::lost_host);
  EXPECT_THAT(ended[0].failure.message(), StartsWith("host silent is lost: it has not come"));
  EXPECT_EQ(ended[1].how, Ending::said_error) << ended[1].failure.message();
}

TEST_F(Crews, PlayAgainOnHostsWhereAGroupHasFailed) {
  start({"a", "b", "c"}, 60s);
  for (int i = 0; i < 2; ++i) {
    const auto ended = crew_.run({failing({2, 0}), failing({1})});
    ASSERT_EQ(ended.size(), 2U);
    for (const Outcome& one : ended) EXPECT_EQ(one.how, Ending::said_error) << one.failure.message();
    EXPECT_THAT(ended[0].failure.message(), testing::ContainsRegex("rank [01] on [ac]: .*specification"));
    EXPECT_THAT(ended[1].failure.message(), StartsWith("rank 0 on b: "));
  }
  for (int host = 0; host < 3; ++host) EXPECT_FALSE(crew_.loss(host).has_value());
}

}  // namespace
}  // namespace tutti::harness::hosts
