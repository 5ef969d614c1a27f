// SPDX-License-Identifier: Apache-2.0
#include "impl/bootstrap/control.h"

#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/launch/segment.h"

namespace tutti {
namespace {

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
  EXPECT_EQ(connect_to(name).status().code(), Code::unavailable);
  const Result<Descriptor> listener = listen_at(name, 1);
  ASSERT_TRUE(listener.is_ok());
  EXPECT_TRUE(connect_to(name).is_ok());
  EXPECT_EQ(listen_at(name, 1).status().code(), Code::unavailable) << "somebody listens there";
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
