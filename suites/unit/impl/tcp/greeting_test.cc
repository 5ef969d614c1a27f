// SPDX-License-Identifier: Apache-2.0
// Strangers: who does not know the job's secret gets nothing, whatever it has heard before.
#include "impl/tcp/greeting.h"

#include <array>
#include <cstring>
#include <list>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "impl/tcp/meeting.h"
#include "impl/tcp/socket.h"

namespace tutti::tcp {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using State = Greeting::State;

struct Ends {
  Descriptor client, server;
  Ends() {
    std::array<int, 2> sockets{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets.data()), 0);
    client = Descriptor(sockets[0]);
    server = Descriptor(sockets[1]);
  }
};

std::string all_from(const Descriptor& socket) {
  std::array<char, 4096> bytes;
  const ssize_t n = recv(socket.get(), bytes.data(), bytes.size(), 0);
  return {bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0))};
}
void say(const Descriptor& socket, const std::string& text) {
  ASSERT_EQ(send(socket.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
}

const Claim kClaim{.role = Role::link, .from = 3, .to = 1};

TEST(Secret, IsOfSixtyFourDigits) {
  const Secret secret = draw_secret().value();
  EXPECT_EQ(secret_from(to_text(secret)).value(), secret);
  EXPECT_FALSE(draw_secret().value() == secret);
  EXPECT_THAT(secret_from("abc").status().message(), AllOf(HasSubstr("3 characters"), HasSubstr("64 digits")));
  EXPECT_EQ(secret_from(std::string(64, 'g')).status().code(), Code::invalid_argument);
}

TEST(Secret, SealsAreThoseOfTheStandard) {
  Secret key;  // RFC 4231, test case 3 has a key of 20 bytes and zeros make no difference: HMAC pads with them
  for (std::size_t i = 0; i < 20; ++i) key.bytes[i] = std::byte{0xaa};
  const std::vector<std::byte> data(50, std::byte{0xdd});
  Secret seal;
  seal.bytes = seal_of(key, "", {data});
  EXPECT_EQ(to_text(seal), "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
}

TEST(Greeting, BothEndsOfOneJobAgree) {
  const Secret secret = draw_secret().value();
  for (const Verdict verdict : {Verdict::welcome, Verdict::crossed}) {
    const Ends ends;
    Greeting client = Greeting::of_client(secret, draw_nonce().value(), kClaim);
    Greeting server = Greeting::of_server(secret, draw_nonce().value());
    EXPECT_EQ(server.step(ends.server.get()), State::going);
    EXPECT_EQ(client.step(ends.client.get()), State::going);
    EXPECT_EQ(server.step(ends.server.get()), State::claimed);
    EXPECT_EQ(server.claim().from, 3U);
    server.answer(verdict);
    EXPECT_EQ(server.step(ends.server.get()), State::done);
    EXPECT_EQ(client.step(ends.client.get()), State::done);
    EXPECT_EQ(client.verdict(), verdict);
  }
}

TEST(Greeting, AnotherSecretIsRefusedByTheServerBeforeTheClientIs) {
  const Ends ends;
  Greeting client = Greeting::of_client(draw_secret().value(), draw_nonce().value(), kClaim);
  Greeting server = Greeting::of_server(draw_secret().value(), draw_nonce().value());
  server.step(ends.server.get());
  client.step(ends.client.get());
  EXPECT_EQ(server.step(ends.server.get()), State::failed);
}

TEST(Greeting, AServerWithoutTheSecretIsFound) {
  const Ends ends;
  Greeting client = Greeting::of_client(draw_secret().value(), draw_nonce().value(), kClaim);
  Greeting server = Greeting::of_server(draw_secret().value(), draw_nonce().value());
  server.step(ends.server.get());
  client.step(ends.client.get());
  say(ends.server, std::string(sizeof(Verdict) + sizeof(Seal), '\1'));
  EXPECT_EQ(client.step(ends.client.get()), State::failed);
}

TEST(Greeting, WhatWasSaidBeforeCannotBeSaidAgain) {
  const Secret secret = draw_secret().value();
  const Ends first;
  Greeting client = Greeting::of_client(secret, draw_nonce().value(), kClaim);
  Greeting server = Greeting::of_server(secret, draw_nonce().value());
  server.step(first.server.get());
  client.step(first.client.get());
  const std::string overheard = all_from(first.server);

  const Ends second;
  Greeting again = Greeting::of_server(secret, draw_nonce().value());
  again.step(second.server.get());
  say(second.client, overheard);
  EXPECT_EQ(again.step(second.server.get()), State::failed);
}

// A stranger lets the job itself answer: what a server asks goes to the same rank as a client's question, and back.
TEST(Greeting, WhatIsSentBackIsNoAnswer) {
  const Secret secret = draw_secret().value();
  const Ends ends;
  Greeting client = Greeting::of_client(secret, draw_nonce().value(), kClaim);
  Greeting server = Greeting::of_server(secret, draw_nonce().value());
  server.step(ends.server.get());
  client.step(ends.client.get());
  const std::string claim = all_from(ends.server);
  ASSERT_EQ(claim.size(), 80U);
  // The client's own seal in place of the server's.
  std::string answer(sizeof(Verdict), '\0');
  answer[0] = 1;
  say(ends.server, answer + claim.substr(claim.size() - sizeof(Seal)));
  EXPECT_EQ(client.step(ends.client.get()), State::failed);
}

TEST(Greeting, WhoOneClaimsToBeIsSealed) {
  const Secret secret = draw_secret().value();
  for (std::size_t at = 0; at < 80; ++at) {
    const Ends ends;
    Greeting client = Greeting::of_client(secret, draw_nonce().value(), kClaim);
    Greeting server = Greeting::of_server(secret, draw_nonce().value());
    server.step(ends.server.get());
    client.step(ends.client.get());
    std::string claim = all_from(ends.server);
    claim[at] = static_cast<char>(claim[at] ^ 1);
    say(ends.client, claim);
    EXPECT_EQ(server.step(ends.server.get()), State::failed) << "byte " << at;
  }
}

struct Met {
  std::vector<std::string> texts;
  Status status;
};

Met meet_as(const MeetingRequest& request) {
  auto met = meet(request);
  return met.is_ok() ? Met{.texts = met.value(), .status = {}} : Met{.texts = {}, .status = met.status()};
}

class TcpMeeting : public testing::Test {
 protected:
  [[nodiscard]] MeetingRequest as(int process, int processes, std::chrono::nanoseconds timeout = 20s) const {
    return {.secret = secret_,
            .process = process,
            .processes = processes,
            .text = "process " + std::to_string(process),
            .address = listener_.address,
            .listener = listener_.socket.get(),
            .timeout = timeout};
  }
  Secret secret_ = draw_secret().value();
  Listener listener_ = listen_on("127.0.0.1").value();
};

TEST_F(TcpMeeting, EachLearnsWhatAllSay) {
  for (const int processes : {1, 2, 7}) {
    std::vector<Met> met(static_cast<std::size_t>(processes));
    std::vector<std::thread> threads;
    for (int process = 0; process < processes; ++process) {
      threads.emplace_back([&, process] { met[static_cast<std::size_t>(process)] = meet_as(as(process, processes)); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const Met& one : met) {
      ASSERT_TRUE(one.status.is_ok()) << one.status.message();
      ASSERT_EQ(one.texts.size(), static_cast<std::size_t>(processes));
      EXPECT_EQ(one.texts.back(), "process " + std::to_string(processes - 1));
    }
  }
}

TEST_F(TcpMeeting, OverIPv6) {
  auto found = listen_on("::1");
  if (!found.is_ok()) GTEST_SKIP() << found.status().message();
  listener_ = std::move(found).value();
  EXPECT_THAT(listener_.address, HasSubstr("[::1]:"));
  Met host;
  std::thread first([&] { host = meet_as(as(0, 2)); });
  const Met guest = meet_as(as(1, 2));
  first.join();
  EXPECT_TRUE(host.status.is_ok()) << host.status.message();
  EXPECT_EQ(guest.texts, host.texts);
}

TEST_F(TcpMeeting, WhoDoesNotComeIsNamed) {
  Met guest;
  std::thread other([&] { guest = meet_as(as(2, 4, 400ms)); });
  const Met host = meet_as(as(0, 4, 300ms));
  other.join();
  EXPECT_EQ(host.status.code(), Code::timeout);
  EXPECT_THAT(host.status.message(), AllOf(HasSubstr("2 of 4 processes"), HasSubstr(": 1, 3")));
  EXPECT_FALSE(guest.status.is_ok());
}

TEST_F(TcpMeeting, WhoHasAnotherSecretIsNotLetIn) {
  MeetingRequest stranger = as(1, 2, 300ms);
  stranger.secret = draw_secret().value();
  Met refused;
  std::thread other([&] { refused = meet_as(stranger); });
  const Met host = meet_as(as(0, 2, 400ms));
  other.join();
  EXPECT_EQ(host.status.code(), Code::timeout);
  EXPECT_EQ(refused.status.code(), Code::mismatch);
  EXPECT_THAT(refused.status.message(), AllOf(HasSubstr(listener_.address), HasSubstr("of this job")));
}

TEST_F(TcpMeeting, ManyWhoSayNothingKeepNobodyOut) {
  std::list<Descriptor> silent;  // for less time than a stranger is given
  for (int i = 0; i < 400; ++i) {
    auto one = connect_to(listener_.address);
    if (one.is_ok()) silent.push_back(std::move(one).value());
  }
  Met host;
  std::thread first([&] { host = meet_as(as(0, 2, 1500ms)); });
  const Met guest = meet_as(as(1, 2, 1500ms));
  first.join();
  EXPECT_TRUE(host.status.is_ok()) << host.status.message();
  EXPECT_TRUE(guest.status.is_ok()) << guest.status.message();
}

TEST(TcpSocket, WhatIsNoAddressIsSaid) {
  EXPECT_THAT(connect_to("nowhere:7").status().message(), AllOf(HasSubstr("'nowhere'"), HasSubstr("192.0.2.7:4711")));
  EXPECT_EQ(listen_on("127.0.0.300").status().code(), Code::invalid_argument);
}

}  // namespace
}  // namespace tutti::tcp
