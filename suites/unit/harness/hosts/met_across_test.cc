// SPDX-License-Identifier: Apache-2.0
// The processes of several hosts meet. Threads stand for them, each on a host of its own, all at 127.0.0.1.
#include "harness/hosts/met_across.h"

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::hosts {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

class HostsMeet : public testing::Test {
 protected:
  HostsMeet() {
    std::string name = testing::TempDir() + "tutti-meeting-XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~HostsMeet() override { std::filesystem::remove_all(folder_); }
  HostsMeet(const HostsMeet&) = delete;
  HostsMeet& operator=(const HostsMeet&) = delete;

  [[nodiscard]] HostsMeeting meeting_of(int process, int processes = 3) const {
    return {.world = {.process = process, .processes = processes, .spread = "each is on a host of its own"},
            .init = {.host = {}, .port = 0, .file = (folder_ / "meeting").string(), .said_by = "--init"},
            .secret = secret_,
            .start = 7,
            .interface = "127.0.0.1",
            .build = "a build",
            .arguments = "-n 5",
            .timeout = 20s};
  }
  /// By process.
  static std::vector<Result<JoinedHosts>> meet_all(const std::vector<HostsMeeting>& meetings) {
    std::vector<Result<JoinedHosts>> met;
    for (std::size_t i = 0; i < meetings.size(); ++i) met.emplace_back(error(Code::io, "has not met"));
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < meetings.size(); ++i) {
      threads.emplace_back([&, i] { met[i] = meet_hosts(meetings[i]); });
    }
    for (std::thread& thread : threads) thread.join();
    return met;
  }

  std::filesystem::path folder_;
  tcp::Secret secret_ = tcp::draw_secret().value();
};

TEST_F(HostsMeet, AllLearnTheSame) {
  const auto met = meet_all({meeting_of(0), meeting_of(1), meeting_of(2)});
  for (const auto& one : met) {
    ASSERT_TRUE(one.is_ok()) << one.status().message();
    ASSERT_EQ(one.value().all.size(), 3U);
    EXPECT_EQ(one.value().all, met[0].value().all);
    EXPECT_EQ(one.value().key, met[0].value().key);
    EXPECT_EQ(one.value().launcher, met[0].value().launcher);
    EXPECT_EQ(one.value().interface, "127.0.0.1");
  }
  const std::string name = met[0].value().all[0].name;
  EXPECT_EQ(met[0].value().all[2], (JoinedHost{.name = name + "-2", .first = 2, .ranks = 1}));
  EXPECT_TRUE(met[0].value().listener.socket.is_open());
  EXPECT_FALSE(met[0].value().key == secret_) << "the job has a key of its own";
}

TEST_F(HostsMeet, OneThatWasStartedOtherwiseIsNamedByAll) {
  HostsMeeting other = meeting_of(2);
  other.arguments = "-n 6";
  const auto met = meet_all({meeting_of(0), meeting_of(1), other});
  for (const auto& one : met) {
    EXPECT_THAT(one.status().message(), AllOf(HasSubstr("was started with '-n 6', rank 0"), HasSubstr("'-n 5'")));
  }
  EXPECT_EQ(met[0].status().code(), Code::mismatch);
  EXPECT_THAT(met[1].status().message(), HasSubstr("rank 2 on "));
  EXPECT_EQ(met[2].status().code(), Code::unavailable);
}

TEST_F(HostsMeet, OneThatDoesNotComeIsNamed) {
  HostsMeeting meeting = meeting_of(0, 2);
  meeting.timeout = 300ms;
  const auto met = meet_all({meeting});
  EXPECT_EQ(met[0].status().code(), Code::timeout);
  EXPECT_THAT(met[0].status().message(), HasSubstr("1 of 2 processes did not come to 127.0.0.1:"));
}

TEST_F(HostsMeet, OneWithAnotherSecretIsNotOfThem) {
  std::vector meetings = {meeting_of(0, 2), meeting_of(1, 2)};
  for (HostsMeeting& one : meetings) one.timeout = 700ms;
  meetings[1].secret = tcp::draw_secret().value();
  for (const auto& one : meet_all(meetings)) EXPECT_FALSE(one.is_ok());
}

TEST_F(HostsMeet, WithoutALauncherTheFirstOfEachHostIsConnectedWithProcess0) {
  std::vector<Result<MetAcross>> met;
  for (int i = 0; i < 3; ++i) met.emplace_back(error(Code::io, "has not met"));
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back(
        [&, i] { met[static_cast<std::size_t>(i)] = meet_across(meeting_of(i), fmt::format("text {}", i)); });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 3; ++i) {
    const auto& one = met[static_cast<std::size_t>(i)];
    ASSERT_TRUE(one.is_ok()) << one.status().message();
    EXPECT_EQ(one.value().hosts.own, i);
    EXPECT_EQ(one.value().hosts.named().size(), 3U);
    EXPECT_EQ(one.value().hosts.named()[1].slots, 1);
    EXPECT_EQ(one.value().texts, (std::vector<std::string>{"text 0", "text 1", "text 2"}));
    EXPECT_EQ(one.value().place.exchange_address, met[0].value().place.exchange_address);
    EXPECT_EQ(one.value().between.size(), i == 0 ? 2U : 1U);
    EXPECT_EQ(one.value().listeners.domain.is_open(), i == 0);
  }
}

}  // namespace
}  // namespace tutti::harness::hosts
