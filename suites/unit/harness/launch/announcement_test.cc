// SPDX-License-Identifier: Apache-2.0
#include "harness/launch/announcement.h"

#include <chrono>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/launch/connections.h"
#include "harness/launch/control_name.h"
#include "impl/bootstrap/control.h"

namespace tutti::harness::launch {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

std::string name_of(const char* test) { return fmt::format("tutti-test-{}-{}", test, ::getpid()); }

TEST(Announcement, GivesADrawnNameAtWhichASocketListens) {
  const std::string name = name_of("announced");
  auto one = Announcement::make(name, 2);
  ASSERT_TRUE(one.is_ok()) << one.status().message();
  for (int rank = 0; rank < 3; ++rank) {
    const auto control = announced_at(name, 5s);
    ASSERT_TRUE(control.is_ok()) << control.status().message();
    EXPECT_EQ(control.value(), one.value()->control());
    EXPECT_TRUE(connect_to(control.value(), 1s).is_ok());
  }
  EXPECT_THAT(one.value()->control(), Not(HasSubstr(name)));
  EXPECT_NE(draw_control_name(), draw_control_name());
}

TEST(Announcement, IsWaitedFor) {
  const std::string name = name_of("late");
  EXPECT_EQ(announced_at(name, 50ms).status().code(), Code::timeout);
  Result<std::string> control = std::string();
  std::thread early([&] { control = announced_at(name, 20s); });
  std::this_thread::sleep_for(50ms);
  const auto one = Announcement::make(name, 2);
  early.join();
  ASSERT_TRUE(one.is_ok() && control.is_ok());
  EXPECT_EQ(control.value(), one.value()->control());
}

TEST(Announcement, ThereIsOneAtATime) {
  const std::string name = name_of("twice");
  auto one = Announcement::make(name, 2);
  ASSERT_TRUE(one.is_ok());
  EXPECT_EQ(Announcement::make(name, 2).status().code(), Code::unavailable);
  one.value().reset();
  EXPECT_TRUE(Announcement::make(name, 2).is_ok());
}

TEST(Announcement, ARankThatWaitsAtItsEndHearsThatThereIsNoJob) {
  const std::string name = name_of("ended");
  auto one = Announcement::make(name, 2);
  ASSERT_TRUE(one.is_ok());
  const auto waiting = connect_to(one.value()->control(), 1s);
  ASSERT_TRUE(waiting.is_ok());
  one.value().reset();
  FrameReader reader;
  std::vector<Descriptor> none;
  const auto frame = receive_frame(waiting.value().get(), reader, none);
  ASSERT_TRUE(frame.is_ok()) << frame.status().message();
  EXPECT_EQ(frame.value().type, kEnd);
  EXPECT_EQ(receive_frame(waiting.value().get(), reader, none).status().code(), Code::aborted);
}

TEST(Announcement, ManyThatStayDoNotKeepARankOut) {
  const std::string name = name_of("many");
  const auto one = Announcement::make(name, 2);
  ASSERT_TRUE(one.is_ok());
  std::vector<Descriptor> visitors;
  for (int i = 0; i < 100; ++i) {
    auto visitor = connect_to(name, 5s);
    ASSERT_TRUE(visitor.is_ok()) << visitor.status().message();
    visitors.push_back(std::move(visitor).value());
  }
  EXPECT_TRUE(announced_at(name, 5s).is_ok());
}

}  // namespace
}  // namespace tutti::harness::launch
