// SPDX-License-Identifier: Apache-2.0
// The reader of frames: pieces of any length, and what no peer of this job sends.
#include "impl/transports/tcp/frames.h"

#include <cstring>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::tcp {
namespace {

using testing::HasSubstr;

constexpr DomainShape kShape{
    .ranks = 2, .generations = 4, .slots = 2, .slot_bytes = 256, .pair_slots = 1, .pair_slot_bytes = 128};

class Frames : public testing::Test {
 protected:
  void add(const FrameHeader& header, const std::string& body = "") {
    bytes_.append(reinterpret_cast<const char*>(&header), sizeof header);
    bytes_ += body;
  }
  void add_slice(std::uint64_t slice, const std::string& payload, ChannelOf channel = ChannelOf::collectives) {
    SlotHeader header{};
    header.message.store(slice);
    header.bytes = payload.size();
    header.hash = 77;
    add({.bytes = static_cast<std::uint32_t>(sizeof header + payload.size()),
         .kind = Kind::slice,
         .channel = channel,
         .number = slice},
        std::string(reinterpret_cast<const char*>(&header), sizeof header) + payload);
  }
  void add_line(int generation, std::uint64_t flag) {
    std::string line(kLineOnTheWay, 'x');
    std::memcpy(line.data(), &flag, sizeof flag);
    add({.bytes = kLineOnTheWay, .kind = Kind::line, .number = static_cast<std::uint64_t>(generation)}, line);
  }
  /// In pieces of at most `piece` bytes.
  Status take(std::size_t piece) {
    Status status;
    for (std::size_t at = 0; at < bytes_.size() && status.is_ok(); at += piece) {
      const std::size_t part = std::min(piece, bytes_.size() - at);
      status = reader_.take(std::as_bytes(std::span(bytes_).subspan(at, part)));
    }
    bytes_.clear();
    return status;
  }
  [[nodiscard]] const SlotHeader& slot(std::uint64_t slice) {
    const std::byte* const slots = mirror_.from_peer(ChannelOf::collectives).slots;
    return *reinterpret_cast<const SlotHeader*>(slots + (slice - 1) % 2 * (sizeof(SlotHeader) + kShape.slot_bytes));
  }
  [[nodiscard]] std::string refused() {
    const Status status = take(1000);
    EXPECT_EQ(status.code(), Code::io) << status.message();
    return status.message();
  }

  std::vector<FlagLine> mine_ = std::vector<FlagLine>(4);
  Mirror mirror_{kShape, mine_.data()};
  std::array<std::uint64_t, kChannelsOfPair> published_{5, 0};
  FrameReader reader_{mirror_, published_};
  std::string bytes_;
};

TEST_F(Frames, ArriveInPiecesOfAnyLength) {
  std::uint64_t slice = 0;
  for (const std::size_t piece : {1U, 2U, 3U, 7U, 16U, 63U, 64U, 65U, 1000U}) {
    const std::string payload(100 + piece % 100, static_cast<char>('a' + piece % 20));
    add_slice(++slice, payload);
    add_line(2, slice << 16U);
    add({.kind = Kind::count, .number = 3});
    ASSERT_TRUE(take(piece).is_ok());
    EXPECT_EQ(slot(slice).message.load(), slice);
    EXPECT_EQ(slot(slice).bytes, payload.size());
    EXPECT_EQ(slot(slice).hash, 77U);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(&slot(slice) + 1), payload.size()), payload);
    EXPECT_EQ(mirror_.theirs()[2].flag.load(), slice << 16U);
    EXPECT_EQ(mirror_.to_peer(ChannelOf::collectives).consumed->load(), 3U);
    mirror_.from_peer(ChannelOf::collectives).consumed->store(slice);
  }
  EXPECT_FALSE(reader_.has_left());
  add({.kind = Kind::bye});
  ASSERT_TRUE(take(1).is_ok());
  EXPECT_TRUE(reader_.has_left());
}

TEST_F(Frames, AHalfSliceIsNotSeen) {
  add_slice(1, std::string(200, 'a'));
  bytes_.pop_back();
  ASSERT_TRUE(take(50).is_ok());
  EXPECT_EQ(slot(1).message.load(), 0U);
  EXPECT_TRUE(reader_.is_within_frame());
  bytes_ = "a";
  ASSERT_TRUE(take(1).is_ok());
  EXPECT_EQ(slot(1).message.load(), 1U);
}

TEST_F(Frames, AnOlderFlagIsDropped) {
  add_line(1, 9U << 16U);
  add_line(1, 5U << 16U);
  ASSERT_TRUE(take(1000).is_ok());
  EXPECT_EQ(mirror_.theirs()[1].flag.load(), 9U << 16U);
}

TEST_F(Frames, WhatHasNoPlaceIsRefused) {
  add_slice(2, "x");
  EXPECT_THAT(refused(), HasSubstr("no free slot"));
}
TEST_F(Frames, MoreSlicesThanSlotsAreRefused) {
  for (const std::uint64_t slice : {1U, 2U, 3U}) add_slice(slice, "x");
  EXPECT_THAT(refused(), HasSubstr("no free slot"));
}
TEST_F(Frames, ASliceBeyondItsSlotIsRefused) {
  add_slice(1, std::string(kShape.pair_slot_bytes + 1, 'x'), ChannelOf::sends);
  EXPECT_THAT(refused(), HasSubstr("fits no slot"));
}
TEST_F(Frames, CountsOfWhatWasNotSentAreRefused) {
  add({.kind = Kind::count, .number = 6});
  EXPECT_THAT(refused(), HasSubstr("not sent"));
}
TEST_F(Frames, AFlagWithoutALineIsRefused) {
  add_line(4, 1);
  EXPECT_THAT(refused(), HasSubstr("no line"));
}
TEST_F(Frames, AnotherKindIsRefused) {
  add({.kind = static_cast<Kind>(9)});
  EXPECT_THAT(refused(), HasSubstr("no frame"));
}

// Whatever comes: an error, or nothing beyond the mirror is touched (which the sanitizers see).
TEST_F(Frames, RubbishIsAnErrorOrHarmless) {
  std::mt19937_64 random(7);
  int refused = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    Mirror mirror(kShape, mine_.data());
    FrameReader reader(mirror, published_);
    bytes_.clear();
    for (auto frames = random() % 3; frames > 0; --frames) {
      random() % 2 == 0 ? add_slice(1, std::string(random() % 300, 'y')) : add_line(static_cast<int>(random() % 5), 1);
    }
    for (auto n = random() % 40; n > 0; --n) bytes_.push_back(static_cast<char>(random()));
    for (auto n = random() % 3; n > 0 && !bytes_.empty(); --n)
      bytes_[random() % bytes_.size()] = static_cast<char>(random());
    refused += reader.take(std::as_bytes(std::span(bytes_))).is_ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace tutti::tcp
