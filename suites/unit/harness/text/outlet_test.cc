// SPDX-License-Identifier: Apache-2.0
#include "harness/text/outlet.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <string>
#include <unistd.h>
#include <utility>

#include <gtest/gtest.h>

namespace tutti::harness::text {
namespace {

/// A pipe with room for a page.
class LittlePipe : public ::testing::Test {
 protected:
  LittlePipe() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    reader_ = Descriptor(ends[0]);
    writer_ = Descriptor(ends[1]);
    ::fcntl(writer_.get(), F_SETPIPE_SZ, 4096);
  }

  [[nodiscard]] std::string read(std::size_t bytes) const {
    std::string text;
    std::array<char, 4096> part{};
    while (text.size() < bytes) {
      const ssize_t n = ::read(reader_.get(), part.data(), std::min(part.size(), bytes - text.size()));
      if (n <= 0) break;
      text.append(part.data(), static_cast<std::size_t>(n));
    }
    return text;
  }

  Descriptor reader_, writer_;
};

using OutletTest = LittlePipe;

TEST_F(OutletTest, WaitsForNoReader) {
  const auto one = Outlet::on(Descriptor(::dup(writer_.get())));
  const auto other = Outlet::on(std::move(writer_));
  EXPECT_EQ(one->write("short"), 0);
  EXPECT_FALSE(one->is_behind()) << "there was room";
  EXPECT_EQ(read(5), "short");
  const std::string first(10000, 'a'), second(20000, 'b'), third(3, 'c');
  EXPECT_EQ(one->write(first), 0);
  EXPECT_EQ(other->write(second), 0);
  EXPECT_EQ(one->write(third), 0);
  EXPECT_TRUE(one->is_behind() && other->is_behind());
  EXPECT_EQ(read(30003), first + second + third) << "in order";
  EXPECT_TRUE(drain_outlets());
  EXPECT_FALSE(one->is_behind());
}

TEST_F(OutletTest, WritesWhatIsLeftAfterItsOwnerIsGone) {
  const std::string text(10000, 'a');
  EXPECT_EQ(Outlet::on(std::move(writer_))->write(text), 0);
  EXPECT_EQ(read(20000), text) << "and then the end";
}

TEST_F(OutletTest, WaitsWhereWritingWouldNot) {
  ::fcntl(writer_.get(), F_SETFL, O_NONBLOCK);
  const auto one = Outlet::on(std::move(writer_));
  const std::string text(10000, 'a');
  EXPECT_EQ(one->write(text), 0);
  EXPECT_EQ(read(10000), text);
}

TEST_F(OutletTest, SaysThatTheReaderIsGone) {
  const auto handler = std::signal(SIGPIPE, SIG_IGN);
  const auto one = Outlet::on(std::move(writer_));
  EXPECT_EQ(one->write("text"), 0);
  reader_.close();
  EXPECT_EQ(one->write("more"), EPIPE);
  EXPECT_EQ(one->write("more"), EPIPE);
  one->forgive();
  EXPECT_EQ(one->failure(), 0);
  EXPECT_TRUE(drain_outlets());
  std::signal(SIGPIPE, handler);
}

TEST_F(OutletTest, IsGivenUpWhereTheReaderStands) {
  const auto one = Outlet::on(std::move(writer_));
  EXPECT_EQ(one->write(std::string(10000, 'a')), 0);
  EXPECT_FALSE(drain_outlets(std::chrono::milliseconds(20)));
  EXPECT_EQ(read(10000).size(), 10000U);
}

TEST(OutletOnADevice, SaysAtOnceThatItIsFull) {
  const auto full = Outlet::on(Descriptor(::open("/dev/full", O_WRONLY | O_CLOEXEC)));
  EXPECT_EQ(full->write("text"), ENOSPC);
}

}  // namespace
}  // namespace tutti::harness::text
