// SPDX-License-Identifier: Apache-2.0
// Somebody sits on the wire: whatever is done to the bytes there, no text comes out but what was sent, in its order.
#include "impl/tcp/sealed_stream.h"

#include <array>
#include <string>
#include <sys/socket.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "impl/tcp/socket.h"

namespace tutti::tcp {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Secret counted_from(int first) {
  Secret key;
  for (std::size_t i = 0; i < key.bytes.size(); ++i) key.bytes[i] = static_cast<std::byte>(first + static_cast<int>(i));
  return key;
}

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

/// Each text as its own piece of the wire.
std::vector<std::string> sealed(const Secret& key, const std::vector<std::string>& texts) {
  Sealer sealer(key);
  std::vector<std::string> pieces;
  for (const std::string& text : texts) sealer.seal({std::as_bytes(std::span(text))}, pieces.emplace_back());
  return pieces;
}

struct Opened {
  std::vector<std::string> texts;
  bool is_broken = false;
};

Opened open_all(Opener opener, const std::string& bytes, std::size_t at_once = 1 << 20) {
  Opened all;
  for (std::size_t at = 0; at < bytes.size(); at += at_once) {
    opener.append(std::string_view(bytes).substr(at, at_once));
    for (;;) {
      auto text = opener.next();
      if (!text.is_ok()) all.is_broken = true;
      if (!text.is_ok() || !text.value()) break;
      all.texts.push_back(*text.value());
    }
  }
  return all;
}

const Secret kKey = counted_from(0);
const std::vector<std::string> kTexts{"hello", "", "what the others say"};

TEST(Sealed, TheBytesAreThoseOfTheFormat) {
  EXPECT_EQ(hex(sealed(kKey, kTexts)[0] + sealed(kKey, kTexts)[1]),
            "050000009b163d4ed3318eb4b3c93219c51b32f868656c6c6f80aebb89de092d176d08dddafe604921"
            "0000000097384d7d57a49513c9fd30dbebc4f66ed419eaa160d442839c2d0e1eb4563554");
}

TEST(Sealed, TextsComeInTheirOrderHoweverTheBytesDo) {
  const auto pieces = sealed(kKey, kTexts);
  for (const std::size_t at_once : {1, 7, 1000}) {
    const Opened opened = open_all(Opener(kKey), pieces[0] + pieces[1] + pieces[2], at_once);
    EXPECT_EQ(opened.texts, kTexts);
    EXPECT_FALSE(opened.is_broken);
  }
}

TEST(Sealed, AChangedBitAnywhereIsFound) {
  const auto pieces = sealed(kKey, kTexts);
  const std::string all = pieces[0] + pieces[1] + pieces[2];
  for (std::size_t bit = 0; bit < 8 * all.size(); ++bit) {
    std::string changed = all;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    const Opened opened = open_all(Opener(kKey), changed);
    ASSERT_TRUE(opened.is_broken) << "bit " << bit;
    ASSERT_LT(opened.texts.size(), 3U);
    for (std::size_t i = 0; i < opened.texts.size(); ++i) ASSERT_EQ(opened.texts[i], kTexts[i]) << "bit " << bit;
  }
}

TEST(Sealed, WhatIsRepeatedMovedOrLeftOutIsFound) {
  const auto pieces = sealed(kKey, kTexts);
  for (const auto& order : {std::vector{0, 0}, {1}, {0, 2}, {1, 0}, {0, 1, 1}, {0, 1, 0}}) {
    std::string bytes;
    for (const int piece : order) bytes += pieces[static_cast<std::size_t>(piece)];
    const Opened opened = open_all(Opener(kKey), bytes);
    EXPECT_TRUE(opened.is_broken) << testing::PrintToString(order);
  }
}

TEST(Sealed, WhatIsCutOffIsNoText) {
  const auto pieces = sealed(kKey, kTexts);
  for (std::size_t bytes = 0; bytes < pieces[0].size(); ++bytes) {
    Opener opener(kKey);
    opener.append(pieces[0].substr(0, bytes));
    const auto text = opener.next();
    ASSERT_TRUE(text.is_ok() && !text.value()) << bytes;
    EXPECT_EQ(opener.is_within_message(), bytes > 0);
  }
}

TEST(Sealed, TheEndOfAMessageCannotStandForItsBeginning) {
  // Its length and its text have tags of two kinds, though both may be four bytes.
  const std::string text{"\4\0\0\0", 4};
  const std::string piece = sealed(kKey, {text}).front();
  const Opened opened = open_all(Opener(kKey), piece.substr(sizeof(std::uint32_t) + kTagBytes) + piece);
  EXPECT_TRUE(opened.is_broken && opened.texts.empty());
}

TEST(Sealed, AnotherKeyIsFound) {
  EXPECT_TRUE(open_all(Opener(counted_from(1)), sealed(kKey, kTexts).front()).is_broken);
}

// A length without its tag is not believed: nothing is kept for a gigabyte that does not come.
TEST(Sealed, ALengthIsCheckedBeforeItsTextIsWaitedFor) {
  std::string piece = sealed(kKey, {"a"}).front();
  piece.replace(0, 4, "\xff\xff\xff\x03", 4);
  EXPECT_TRUE(open_all(Opener(kKey), piece.substr(0, sizeof(std::uint32_t) + kTagBytes)).is_broken);
}

class SealedStreams : public testing::Test {
 protected:
  SealedStreams() {
    const Listener listener = listen_on("127.0.0.1").value();
    Descriptor one = connect_to(listener.address).value();
    Descriptor other;
    while (!other.is_open()) other = accept_from(listener.socket.get());
    wire_ = one.get();
    address_ = listener.address;
    one_ = SealedStream(std::move(one), {.out = kKey, .in = counted_from(9)});
    other_ = SealedStream(std::move(other), {.out = counted_from(9), .in = kKey});
  }
  Result<std::optional<std::string>> heard_by(SealedStream& stream) {
    for (int turn = 0; turn < 2000; ++turn) {
      one_.flush();
      other_.flush();
      stream.receive();
      auto text = stream.next();
      if (!text.is_ok() || text.value() || !stream.is_open()) return text;
      usleep(1000);
    }
    return std::optional<std::string>();
  }
  int wire_ = -1;  ///< what somebody puts on it comes from `one_`
  std::string address_;
  SealedStream one_, other_;
};

TEST_F(SealedStreams, TalkBothWays) {
  const std::string large(16 << 20, 'x');
  one_.send(large);
  one_.send("small");
  EXPECT_FALSE(one_.has_sent_all());
  EXPECT_EQ(heard_by(other_).value(), large);
  EXPECT_EQ(heard_by(other_).value(), "small");
  other_.send("and back");
  EXPECT_EQ(heard_by(one_).value(), "and back");
  EXPECT_TRUE(one_.has_sent_all());
}

TEST_F(SealedStreams, NameTheOtherEndWhereItsBytesWereChanged) {
  one_.send("genuine");
  ASSERT_EQ(::send(wire_, "\1\0\0\0 put in between, and long enough", 36, 0), 36);
  one_.send("too late");
  EXPECT_EQ(heard_by(other_).value(), "genuine") << "what came before holds";
  for (int again = 0; again < 2; ++again) {
    const Status why = heard_by(other_).status();
    EXPECT_EQ(why.code(), Code::io);
    EXPECT_THAT(why.message(), AllOf(HasSubstr("bytes of the connection to 127.0.0.1:"), HasSubstr("on the way")));
  }
  other_.send("I do not understand");
  EXPECT_EQ(heard_by(one_).value(), "I do not understand");
}

TEST_F(SealedStreams, WhatOneSaysIsNotHeardByItself) {
  other_.send("who are you?");
  std::array<char, 256> bytes;
  const ssize_t n = recv(wire_, bytes.data(), bytes.size(), 0);
  ASSERT_GT(n, 0);
  ASSERT_EQ(::send(wire_, bytes.data(), static_cast<std::size_t>(n), 0), n);
  EXPECT_EQ(heard_by(other_).status().code(), Code::io);
}

TEST_F(SealedStreams, AnEndWithinAMessageIsNoText) {
  ASSERT_EQ(::send(wire_, sealed(kKey, {"half"}).front().data(), 30, 0), 30);
  one_.close();
  const auto text = heard_by(other_);
  EXPECT_TRUE(text.is_ok() && !text.value());
  EXPECT_FALSE(other_.is_open());
}

}  // namespace
}  // namespace tutti::tcp
