// SPDX-License-Identifier: Apache-2.0
// Threads stand for the processes that meet.
#include "impl/bootstrap/meeting.h"

#include <atomic>
#include <cstring>
#include <functional>
#include <sys/mman.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

std::string fresh_name() {
  static std::atomic<int> number{0};
  return fmt::format("tutti-meeting-test-{}-{}", ::getpid(), number.fetch_add(1));
}

MeetingRequest request_of(const std::string& name, int process, int processes) {
  return {.world = {.process = process, .processes = processes, .meeting = name},
          .text = fmt::format("I am {}\nof {}", process, processes),
          .timeout = 20s,
          .memory_bytes = [](std::span<const Introduction>) -> Result<std::size_t> { return std::size_t{8192}; }};
}

/// What each request's thread got.
std::vector<Result<Meeting>> meet_all(const std::vector<MeetingRequest>& requests) {
  std::vector<std::optional<Result<Meeting>>> got(requests.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < requests.size(); ++i) threads.emplace_back([&, i] { got[i].emplace(meet(requests[i])); });
  for (std::thread& thread : threads) thread.join();
  std::vector<Result<Meeting>> results;
  for (auto& one : got) results.push_back(std::move(*one));
  return results;
}

std::vector<MeetingRequest> all_of(const std::string& name, int processes) {
  std::vector<MeetingRequest> requests;
  for (int process = 0; process < processes; ++process) requests.push_back(request_of(name, process, processes));
  return requests;
}

TEST(Meeting, AllGetOneMemoryAndLearnOfEachOther) {
  auto results = meet_all(all_of(fresh_name(), 3));
  ino_t memory = 0;
  for (auto& result : results) {
    ASSERT_TRUE(result.is_ok()) << result.status().message();
    const Meeting& meeting = result.value();
    ASSERT_EQ(meeting.all.size(), 3U);
    EXPECT_EQ(meeting.all[2].text, "I am 2\nof 3");
    EXPECT_EQ(meeting.all[1].pid, ::getpid());
    struct stat about = {};
    ASSERT_EQ(::fstat(meeting.memory.get(), &about), 0);
    EXPECT_EQ(about.st_size, 8192);
    if (memory == 0) memory = about.st_ino;
    EXPECT_EQ(about.st_ino, memory);
  }
  EXPECT_EQ(results[0].value().links.size(), 3U);
  EXPECT_FALSE(results[0].value().links[0].is_open());
  EXPECT_EQ(results[1].value().links.size(), 1U);
}

TEST(Meeting, TwoJobsAtOnceDoNotMeet) {
  auto requests = all_of(fresh_name(), 2);
  for (const MeetingRequest& one : all_of(fresh_name(), 3)) requests.push_back(one);
  const auto results = meet_all(requests);
  for (std::size_t i = 0; i < results.size(); ++i) {
    ASSERT_TRUE(results[i].is_ok()) << results[i].status().message();
    EXPECT_EQ(results[i].value().all.size(), i < 2 ? 2U : 3U);
  }
}

TEST(Meeting, WhoeverDoesNotComeIsNamed) {
  auto requests = all_of(fresh_name(), 4);
  for (MeetingRequest& one : requests) one.timeout = 300ms;
  requests.erase(requests.begin() + 1, requests.begin() + 3);
  for (const auto& result : meet_all(requests)) {
    EXPECT_EQ(result.status().code(), Code::timeout);
    EXPECT_THAT(result.status().message(), HasSubstr("ranks 1, 2 of 4 did not come within 0.3 s"));
  }
  MeetingRequest alone = request_of(fresh_name(), 1, 2);
  alone.timeout = 100ms;
  EXPECT_THAT(meet(alone).status().message(), HasSubstr("rank 0 of 2 did not come within 0.1 s"));
}

TEST(Meeting, AnotherNumberOfRanksIsNoRankOfThisJob) {
  const std::string name = fresh_name();
  for (const auto& result : meet_all({request_of(name, 0, 2), request_of(name, 1, 3)})) {
    EXPECT_EQ(result.status().code(), Code::mismatch);
    EXPECT_THAT(result.status().message(), HasSubstr("says that there are 3 ranks, rank 0 that there are 2"));
  }
}

TEST(Meeting, ARankThatComesTwiceEndsTheMeeting) {
  const std::string name = fresh_name();
  for (const auto& result : meet_all({request_of(name, 0, 3), request_of(name, 1, 3), request_of(name, 1, 3)})) {
    EXPECT_EQ(result.status().code(), Code::mismatch);
    EXPECT_THAT(result.status().message(), HasSubstr("rank 1 was started twice"));
  }
}

TEST(Meeting, TwoHostsOfOneNameAreToldSo) {
  const std::string name = fresh_name();
  const auto other = listen_at(name, 1);
  ASSERT_TRUE(other.is_ok());
  EXPECT_THAT(meet(request_of(name, 0, 2)).status().message(), HasSubstr("another rank 0 waits at the meeting"));
}

TEST(Meeting, ARefusalReachesAllInTheSameWords) {
  auto requests = all_of(fresh_name(), 3);
  requests[0].memory_bytes = [](std::span<const Introduction> all) -> Result<std::size_t> {
    return error(Code::unavailable, "not for {}", all.size());
  };
  for (const auto& result : meet_all(requests)) {
    EXPECT_EQ(result.status().code(), Code::unavailable);
    EXPECT_EQ(result.status().message(), "not for 3");
  }
}

TEST(Meeting, StrangersDoNotDisturbIt) {
  const std::string name = fresh_name();
  std::thread stranger([&] {
    for (int i = 0; i < 200; ++i) {
      const auto link = connect_to(name, 1s);
      if (link.is_ok()) {
        static_cast<void>(send_frame(link.value().get(), {"hello", "nonsense"}).is_ok());
        return;
      }
      std::this_thread::sleep_for(5ms);
    }
  });
  MeetingRequest late = request_of(name, 1, 2);
  auto host = std::thread([&] { EXPECT_TRUE(meet(request_of(name, 0, 2)).is_ok()); });
  stranger.join();
  EXPECT_TRUE(meet(late).is_ok());
  host.join();
}

TEST(Meeting, ErrorsTravelAsText) {
  const Status status = error(Code::timeout, "rank {} is late", 3);
  EXPECT_EQ(error_from(error_text(status)).code(), Code::timeout);
  EXPECT_EQ(error_from(error_text(status)).message(), "rank 3 is late");
  EXPECT_EQ(error_from("nonsense").code(), Code::aborted);
}

}  // namespace
}  // namespace tutti
