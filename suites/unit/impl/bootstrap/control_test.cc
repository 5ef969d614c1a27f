// SPDX-License-Identifier: Apache-2.0
#include "impl/bootstrap/control.h"

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/board/segment.h"

namespace tutti {
namespace {

using namespace std::chrono_literals;

struct Pair {
  Descriptor near;
  Descriptor far;
};

Pair connected() {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  Pair pair;
  pair.near = Descriptor(ends[0]);
  pair.far = Descriptor(ends[1]);
  return pair;
}

std::string bytes_of(const Frame& frame) {
  const Pair pair = connected();
  EXPECT_TRUE(send_frame(pair.near.get(), frame).is_ok());
  std::string bytes(4096, '\0');
  bytes.resize(static_cast<std::size_t>(::read(pair.far.get(), bytes.data(), bytes.size())));
  return bytes;
}

TEST(FrameReader, FramesComeWholeHoweverTheirBytesAreCut) {
  const std::string bytes =
      bytes_of({"row", "some text"}) + bytes_of({"", ""}) + bytes_of({"bye", std::string(1, '\0')});
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    FrameReader reader;
    std::vector<std::pair<std::string, std::string>> frames;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      reader.append(std::string_view(bytes).substr(at, piece));
      for (;;) {
        auto next = reader.next();
        ASSERT_TRUE(next.is_ok());
        if (!next.value()) break;
        frames.emplace_back(next.value()->type, next.value()->text);
      }
    }
    using Text = std::pair<std::string, std::string>;
    EXPECT_EQ(frames, (std::vector<Text>{{"row", "some text"}, {"", ""}, {"bye", std::string(1, '\0')}}));
    EXPECT_TRUE(reader.is_empty());
  }
}

TEST(FrameReader, OtherBytesAreAnError) {
  FrameReader reader;
  reader.append("GET / HTTP/1.1\r\n");
  EXPECT_EQ(reader.next().status().code(), Code::io);
  std::string too_long = bytes_of({"row", ""});
  too_long[11] = '\x7f';  // the high byte of the text's length
  FrameReader second;
  second.append(too_long);
  EXPECT_EQ(second.next().status().code(), Code::io);
}

TEST(Control, DescriptorsTravelWithAFrame) {
  const Pair pair = connected();
  const Result<Descriptor> segment = harness::make_text_segment("test", "inside");
  ASSERT_TRUE(segment.is_ok());
  const std::vector<int> numbers = {segment.value().get(), segment.value().get()};
  std::thread sender([&] {
    EXPECT_TRUE(send_frame(pair.near.get(), {"t", std::string(1 << 20, 'x')}, numbers).is_ok());
  });
  FrameReader reader;
  std::vector<Descriptor> received;
  const Result<Frame> frame = receive_frame(pair.far.get(), reader, received);
  sender.join();
  ASSERT_TRUE(frame.is_ok());
  EXPECT_EQ(frame.value().text.size(), std::size_t{1} << 20);
  ASSERT_EQ(received.size(), 2U);
  EXPECT_EQ(harness::read_text(received[1].get()).value(), "inside");
}

TEST(Control, EndOfStreamIsAborted) {
  Pair pair = connected();
  pair.near.close();
  FrameReader reader;
  std::vector<Descriptor> none;
  EXPECT_EQ(receive_frame(pair.far.get(), reader, none).status().code(), Code::aborted);
  EXPECT_EQ(send_frame(pair.far.get(), {"row", ""}).code(), Code::io);
}

TEST(Control, NobodyAtANameIsUnavailable) {
  const std::string name = "tutti-test-" + std::to_string(::getpid());
  EXPECT_EQ(connect_to(name, 1s).status().code(), Code::unavailable);
  const Result<Descriptor> listener = listen_at(name, 1);
  ASSERT_TRUE(listener.is_ok());
  EXPECT_TRUE(connect_to(name, 1s).is_ok());
  EXPECT_EQ(listen_at(name, 1).status().code(), Code::unavailable) << "somebody listens there";
}

TEST(Control, AFullQueueIsWaitedForOnlySoLong) {
  const std::string name = "tutti-test-full-" + std::to_string(::getpid());
  const Result<Descriptor> listener = listen_at(name, 1);
  ASSERT_TRUE(listener.is_ok());
  std::vector<Descriptor> waiting;
  Status full;
  for (int i = 0; i < 10 && full.is_ok(); ++i) {
    auto socket = connect_to(name, 100ms);
    full = socket.status();
    if (full.is_ok()) waiting.push_back(std::move(socket).value());
  }
  EXPECT_EQ(full.code(), Code::timeout);
  EXPECT_THAT(full.message(), testing::HasSubstr("has accepted no process for 0.1 s"));
}

TEST(Control, WhatDoesNotComeIsWaitedForOnlySoLong) {
  const Pair pair = connected();
  limit_waits(pair.far.get(), 50ms);
  FrameReader reader;
  std::vector<Descriptor> none;
  EXPECT_EQ(receive_frame(pair.far.get(), reader, none).status().code(), Code::timeout);
}

/// A process of another user that holds a name, until it is destroyed.
class Stranger {
 public:
  static constexpr uid_t kUser = 65534;

  /// With a backlog below 0 it does not listen.
  Stranger(const std::string& name, int backlog) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    Descriptor ready(ends[0]);
    Descriptor is_ready(ends[1]);
    pid_ = ::fork();
    if (pid_ == 0) {
      if (::setresuid(kUser, kUser, kUser) != 0) ::_exit(1);
      sockaddr_un address = {};
      address.sun_family = AF_UNIX;
      std::ranges::copy(name, address.sun_path + 1);
      const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
      const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
      if (::bind(socket, reinterpret_cast<const sockaddr*>(&address), bytes) != 0) ::_exit(1);
      if (backlog >= 0 && ::listen(socket, backlog) != 0) ::_exit(1);
      if (::write(is_ready.get(), "r", 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    is_ready.close();
    char byte = 0;
    EXPECT_EQ(::read(ready.get(), &byte, 1), 1);
  }
  ~Stranger() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

TEST(Control, AnotherUserAtANameIsNamed) {
  if (::getuid() != 0) GTEST_SKIP() << "only root can start a process of another user";
  const std::string name = "tutti-test-stranger-" + std::to_string(::getpid());
  const Stranger stranger(name, 8);
  const std::string whole =
      fmt::format("a process of user 65534 (pid {}) is there instead of one of user 0", stranger.pid());
  for (const Status& status : {connect_to(name, 1s).status(), listen_at(name, 1).status()}) {
    EXPECT_EQ(status.code(), Code::mismatch);
    EXPECT_EQ(status.message(), whole);
  }
}

TEST(Control, AnotherUserThatAcceptsNothingIsNamed) {
  if (::getuid() != 0) GTEST_SKIP() << "only root can start a process of another user";
  for (const int backlog : {-1, 0}) {  // it does not listen; its queue is full
    const std::string name = fmt::format("tutti-test-silent{}-{}", backlog, ::getpid());
    const Stranger stranger(name, backlog);
    const auto first = connect_to(name, 100ms);  // stays in the queue, if there is one
    EXPECT_EQ(first.status().code(), backlog < 0 ? Code::unavailable : Code::mismatch);
    const Status status = listen_at(name, 1).status();
    if (status.code() == Code::unavailable) GTEST_SKIP() << "this kernel does not list the users of sockets";
    EXPECT_EQ(status.code(), Code::mismatch);
    EXPECT_THAT(status.message(), testing::HasSubstr("a process of user 65534"));
  }
}

TEST(Segment, SizeIsFixed) {
  const Result<Descriptor> segment = harness::make_segment("test", 8192);
  ASSERT_TRUE(segment.is_ok());
  EXPECT_NE(::ftruncate(segment.value().get(), 4096), 0);
  EXPECT_NE(::ftruncate(segment.value().get(), 16384), 0);
}

TEST(Segment, MoreThanThereIsIsAnErrorWithNumbers) {
  const Status status = harness::make_segment("test", std::size_t{1} << 52).status();
  EXPECT_EQ(status.code(), Code::resource);
  EXPECT_THAT(status.message(), testing::HasSubstr("4503599627370496 bytes"));
}

}  // namespace
}  // namespace tutti
