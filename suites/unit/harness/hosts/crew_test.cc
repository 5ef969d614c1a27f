// SPDX-License-Identifier: Apache-2.0
// A crew whose agent runs the command here: hosts that never come, and groups that fail one beside the other.
#include "harness/hosts/crew.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/process/waits.h"
#include "suites/unit/harness/hosts/host_double.h"

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
    std::ofstream(agent_) << "#!/bin/sh\n[ $1 = silent ] && exec sleep 60\n"
                          << "[ $1 = played ] && exec cat > ${0}-invitation\nshift\nexec \"$@\"\n";
    std::filesystem::permissions(agent_, std::filesystem::perms::owner_all);
  }
  ~Crews() override {
    crew_.end();
    if (played_.joinable()) played_.join();
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

  /// A crew of the hosts a and played. The latter sends these frames when it is asked, and then is silent.
  void start_with_played(const std::vector<Frame>& answers) {
    played_ = std::thread([this, answers] {
      std::string line;
      const auto is_there = [&] {
        std::ifstream file(agent_.string() + "-invitation");
        return std::getline(file, line) && !file.eof();
      };
      EXPECT_TRUE(nap_until(kPlayed, is_there));
      const auto invitation = invitation_from(line);
      ASSERT_TRUE(invitation.is_ok()) << invitation.status().message();
      FrameStream host = come_as_host(invitation.value().address, invitation.value().key, 1, [] {});
      host.send({"hello", to_json(HostHello{.build = build_of_crew_program(),
                                            .name = "played",
                                            .kernel = "k",
                                            .description = "{}",
                                            .interface = "127.0.0.1"})});
      EXPECT_EQ(next_of(host, "examine"), kQuestion);
      for (const Frame& frame : answers) host.send(frame);
      EXPECT_TRUE(next_of(host, "leave").has_value());
      host.send({"left", ""});
      nap_until(kPlayed, [&host] {
        host.go_on();
        return host.has_sent_all();
      });
    });
    start({"a", "played"}, 60s);
  }

  /// What the examiners of a and played print.
  std::vector<Result<std::string>> examine(std::chrono::milliseconds patience) {
    auto answers = crew_.examine({kQuestion, kQuestion}, patience);
    EXPECT_TRUE(answers.is_ok()) << answers.status().message();
    return answers.value();
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
  static constexpr const char* kQuestion = R"({"interface": "127.0.0.1"})";

  std::thread played_;
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

TEST_F(Crews, ReturnWhatExaminersPrint) {
  start_with_played({{"examined", "well"}});
  const auto answers = examine(60s);
  ASSERT_TRUE(answers[0].is_ok()) << answers[0].status().message();
  EXPECT_THAT(answers[0].value(), HasSubstr(R"(tutti-doctor {"address":"127.0.0.1")"));
  EXPECT_EQ(answers[1].value(), "well");
}

TEST_F(Crews, WaitForAnAnswerNoLongerThanAsked) {
  start_with_played({});
  const auto answers = examine(1s);
  EXPECT_EQ(answers[1].status().code(), Code::timeout);
  EXPECT_EQ(answers[1].status().message(), "it has not answered within 1 s");
  EXPECT_FALSE(crew_.loss(1).has_value());
}

TEST_F(Crews, TakeNoAnswerThatIsTooLong) {
  start_with_played({{"examined", std::string(kMostExaminedBytes + 1, 'x')}});
  EXPECT_EQ(examine(60s)[1].status().message(), "its answer has more than 1024 KiB");
  EXPECT_FALSE(crew_.loss(1).has_value());
}

TEST_F(Crews, LoseAHostThatAnswersTwice) {
  start_with_played({{"unexamined", "no error text"}, {"examined", "well"}});
  EXPECT_FALSE(examine(60s)[1].is_ok());
  crew_.rest(100ms);
  ASSERT_TRUE(crew_.loss(1).has_value());
  EXPECT_EQ(crew_.loss(1)->message(), "it sends 'examined', which no question has asked for");
}

}  // namespace
}  // namespace tutti::harness::hosts
