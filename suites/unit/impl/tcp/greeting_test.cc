// SPDX-License-Identifier: Apache-2.0
// Strangers: who does not know the job's secret gets nothing, whatever it has heard before.
#include "impl/tcp/greeting.h"

#include <array>
#include <atomic>
#include <cstring>
#include <list>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "impl/tcp/meeting.h"
#include "impl/tcp/sealed_stream.h"
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

template <class Bytes>
Bytes counted_from(int first) {
  Bytes bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(first + static_cast<int>(i));
  return bytes;
}

TEST(Secret, KeysOfJobsAreTheseAndNoOthers) {
  const Secret secret{.bytes = counted_from<Nonce>(0)};
  const Secret key = key_of_job(secret, counted_from<Nonce>(100));
  EXPECT_EQ(to_text(key), "694a3f09a7beb6457f74bd80d96039d595037383c2eaa02c8efc1f81e5a3b687");
  EXPECT_EQ(to_text(derived_from(key, "role", {bytes_of(Role::link)})),
            "0fccf0889e02982f2e973ea234306f372b083639440c355ff9f45c90b40145f6");
  EXPECT_FALSE(key == key_of_job(secret, counted_from<Nonce>(101)));
  EXPECT_FALSE(derived_from(key, "a") == derived_from(key, "b"));
}

/// Both ends, greeted.
struct Greeted {
  Greeting client, server;
};
Greeted greet(const Secret& key, Verdict verdict, std::uint32_t number = 0) {
  const Ends ends;
  const Claim claim{.role = Role::machine, .from = 3, .to = 1};
  Greeted both{.client = Greeting::of_client(key, counted_from<Nonce>(7), claim),
               .server = Greeting::of_server(key, counted_from<Nonce>(8), Role::machine)};
  both.server.step(ends.server.get());
  both.client.step(ends.client.get());
  EXPECT_EQ(both.server.step(ends.server.get()), State::claimed);
  both.server.answer(verdict, number);
  EXPECT_EQ(both.server.step(ends.server.get()), State::done);
  EXPECT_EQ(both.client.step(ends.client.get()), State::done);
  return both;
}

TEST(Greeting, BothEndsHaveTheKeysOfTheConnection) {
  const Secret key{.bytes = counted_from<Nonce>(0)};
  const Greeted both = greet(key, Verdict::welcome);
  const Session client = both.client.session(), server = both.server.session();
  EXPECT_EQ(client.out, server.in);
  EXPECT_EQ(client.in, server.out);
  EXPECT_FALSE(client.in == client.out);
  EXPECT_EQ(to_text(client.out), "53e66539b02343ac92cf05f386e4255baa30e3e76978e55fa3e3511362642c8b");
  EXPECT_EQ(to_text(client.in), "2813b3c9a76d8c2115b48a5a0b52ddd14cc533708f266a6cd0e400c24d7ca962");
  EXPECT_FALSE(client.out == greet(key, Verdict::crossed).client.session().out);
}

TEST(Greeting, AnAnswerCarriesANumber) {
  const Greeted both = greet(draw_secret().value(), Verdict::other_number, 17);
  EXPECT_EQ(both.client.verdict(), Verdict::other_number);
  EXPECT_EQ(both.client.answer().number, 17U);
}

TEST(Greeting, ADoorForAnotherPurposeStaysShut) {
  const Secret key = draw_secret().value();
  const Ends ends;
  Greeting client = Greeting::of_client(key, draw_nonce().value(), kClaim);
  Greeting server = Greeting::of_server(key, draw_nonce().value(), Role::machine);
  server.step(ends.server.get());
  client.step(ends.client.get());
  EXPECT_EQ(server.step(ends.server.get()), State::failed);
}

TEST(Greeting, BothEndsOfOneJobAgree) {
  const Secret secret = draw_secret().value();
  for (const Verdict verdict : {Verdict::welcome, Verdict::crossed}) {
    const Ends ends;
    Greeting client = Greeting::of_client(secret, draw_nonce().value(), kClaim);
    Greeting server = Greeting::of_server(secret, draw_nonce().value(), kClaim.role);
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
  Greeting server = Greeting::of_server(draw_secret().value(), draw_nonce().value(), kClaim.role);
  server.step(ends.server.get());
  client.step(ends.client.get());
  EXPECT_EQ(server.step(ends.server.get()), State::failed);
  EXPECT_TRUE(server.has_other_key());
  EXPECT_EQ(server.claim().from, 3U);
  EXPECT_EQ(client.step(ends.client.get()), State::failed);
  EXPECT_TRUE(client.has_other_key());
}

TEST(Greeting, WhoSpeaksOtherwiseHasNoOtherKey) {
  const Ends ends;
  Greeting server = Greeting::of_server(draw_secret().value(), draw_nonce().value(), Role::link);
  server.step(ends.server.get());
  say(ends.client,
      "GET / HTTP/1.1\r\nHost: www.example.org\r\nUser-Agent: somebody else\r\nAccept: text/html, */*\r\n\r\n");
  EXPECT_EQ(server.step(ends.server.get()), State::failed);
  EXPECT_FALSE(server.has_other_key());

  const Ends others;
  Greeting client = Greeting::of_client(draw_secret().value(), draw_nonce().value(), kClaim);
  say(others.server, "SSH-2.0-something that is longer than the first word of a server");
  EXPECT_EQ(client.step(others.client.get()), State::failed);
  EXPECT_FALSE(client.has_other_key());
}

TEST(Greeting, AServerWithoutTheSecretIsFound) {
  const Ends ends;
  Greeting client = Greeting::of_client(draw_secret().value(), draw_nonce().value(), kClaim);
  Greeting server = Greeting::of_server(draw_secret().value(), draw_nonce().value(), kClaim.role);
  server.step(ends.server.get());
  client.step(ends.client.get());
  say(ends.server, std::string(sizeof(Answer) + sizeof(Seal), '\1'));
  EXPECT_EQ(client.step(ends.client.get()), State::failed);
}

TEST(Greeting, WhatWasSaidBeforeCannotBeSaidAgain) {
  const Secret secret = draw_secret().value();
  const Ends first;
  Greeting client = Greeting::of_client(secret, draw_nonce().value(), kClaim);
  Greeting server = Greeting::of_server(secret, draw_nonce().value(), kClaim.role);
  server.step(first.server.get());
  client.step(first.client.get());
  const std::string overheard = all_from(first.server);

  const Ends second;
  Greeting again = Greeting::of_server(secret, draw_nonce().value(), kClaim.role);
  again.step(second.server.get());
  say(second.client, overheard);
  EXPECT_EQ(again.step(second.server.get()), State::failed);
}

// A stranger lets the job itself answer: what a server asks goes to the same rank as a client's question, and back.
TEST(Greeting, WhatIsSentBackIsNoAnswer) {
  const Secret secret = draw_secret().value();
  const Ends ends;
  Greeting client = Greeting::of_client(secret, draw_nonce().value(), kClaim);
  Greeting server = Greeting::of_server(secret, draw_nonce().value(), kClaim.role);
  server.step(ends.server.get());
  client.step(ends.client.get());
  const std::string claim = all_from(ends.server);
  ASSERT_EQ(claim.size(), 88U);
  // The client's own seal in place of the server's.
  std::string answer(sizeof(Answer), '\0');
  answer[0] = 1;
  say(ends.server, answer + claim.substr(claim.size() - sizeof(Seal)));
  EXPECT_EQ(client.step(ends.client.get()), State::failed);
}

TEST(Greeting, WhoOneClaimsToBeIsSealed) {
  const Secret secret = draw_secret().value();
  for (std::size_t at = 0; at < 88; ++at) {
    const Ends ends;
    Greeting client = Greeting::of_client(secret, draw_nonce().value(), kClaim);
    Greeting server = Greeting::of_server(secret, draw_nonce().value(), kClaim.role);
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
    return {.key = key_,
            .process = process,
            .processes = processes,
            .text = "process " + std::to_string(process),
            .address = listener_.address,
            .listener = listener_.socket.get(),
            .timeout = timeout};
  }
  /// A process that is welcome, and has not said its line.
  [[nodiscard]] SealedStream knock_as(int process, int processes) const {
    Descriptor socket = connect_to(listener_.address).value();
    Greeting greeting = Greeting::of_client(key_, draw_nonce().value(),
                                            {.role = Role::meeting_of_hosts,
                                             .from = static_cast<std::uint32_t>(process),
                                             .of = static_cast<std::uint32_t>(processes)});
    while (greeting.step(socket.get()) == State::going) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(greeting.state(), State::done);
    EXPECT_EQ(greeting.verdict(), Verdict::welcome);
    return {std::move(socket), greeting.session()};
  }
  Secret key_ = draw_secret().value();
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

TEST_F(TcpMeeting, WhoHasAnotherSecretLearnsItWhileProcess0WaitsOn) {
  MeetingRequest stranger = as(1, 3);
  stranger.key = draw_secret().value();
  Met refused;
  std::thread other([&] { refused = meet_as(stranger); });
  std::vector<std::string> news;
  MeetingRequest hosting = as(0, 3, 1s);
  hosting.on_news = [&](std::string_view what) { news.emplace_back(what); };
  const Met host = meet_as(hosting);
  other.join();
  EXPECT_EQ(refused.status.code(), Code::unavailable);
  EXPECT_THAT(refused.status.message(), AllOf(HasSubstr(listener_.address), HasSubstr("another secret")));
  EXPECT_THAT(news, testing::ElementsAre(HasSubstr("process 1 at 127.0.0.1 knows another secret")));
  EXPECT_EQ(host.status.code(), Code::timeout) << "process 2 is missing for another reason";
  EXPECT_THAT(host.status.message(), HasSubstr(": 1, 2; with another secret came process 1 at 127.0.0.1"));
}

TEST_F(TcpMeeting, AnAddressThatCannotBeReachedIsNotWaitedFor) {
  for (const char* const address : {"255.255.255.255:4711", "[2001:db8::1%nowhere]:4711"}) {
    MeetingRequest request = as(1, 2);
    request.address = address;
    const Met met = meet_as(request);
    EXPECT_THAT(met.status.code(), testing::AnyOf(Code::unavailable, Code::invalid_argument)) << address;
    EXPECT_THAT(met.status.message(), HasSubstr(std::string(address).substr(1, 6))) << address;
  }
}

TEST_F(TcpMeeting, WhatWasWaitedForIsNamed) {
  MeetingRequest request = as(1, 2, 200ms);
  listener_.socket.close();
  EXPECT_EQ(meet_as(request).status.message(),
            "no process listens at " + listener_.address +
                ", an address of this host, where process 0 should be, within 0.2 s");
  listener_ = listen_on("127.0.0.1").value();
  request = as(1, 3, 400ms);
  Met host;
  std::thread first([&] { host = meet_as(as(0, 3, 900ms)); });
  const Met guest = meet_as(request);
  first.join();
  EXPECT_EQ(guest.status.code(), Code::timeout);
  EXPECT_THAT(guest.status.message(),
              AllOf(HasSubstr("process 0 at " + listener_.address), HasSubstr("waits for others")));
}

TEST_F(TcpMeeting, AStrangerIsToldWhileTheWaitGoesOn) {
  std::atomic<bool> is_over = false;
  std::thread answers([&] {
    while (!is_over) {
      const Descriptor one = accept_from(listener_.socket.get());
      if (one.is_open()) say(one, "220 mail.example.org ESMTP, and what else such a program says\r\n");
      std::this_thread::sleep_for(2ms);
    }
  });
  std::vector<std::string> news;
  MeetingRequest request = as(1, 2, 500ms);
  request.on_news = [&](std::string_view what) { news.emplace_back(what); };
  const Met met = meet_as(request);
  request.knocks_once = true;
  request.timeout = 20s;
  const Met once = meet_as(request);
  is_over = true;
  answers.join();
  const std::string said =
      "the program at " + listener_.address + " did not prove that it is of this job: it is no tutti of this version";
  EXPECT_THAT(news, testing::ElementsAre(said + "; still waiting for process 0"));
  EXPECT_EQ(met.status.code(), Code::unavailable);
  EXPECT_EQ(met.status.message(), said);
  EXPECT_EQ(once.status.message(), said);
}

TEST_F(TcpMeeting, AProcessOfAnotherJobIsTurnedAwayWithWordsAndTheJobGoesOn) {
  Met host;
  std::thread first([&] { host = meet_as(as(0, 3)); });
  MeetingRequest other_start = as(1, 3);
  other_start.job = 7;
  for (const auto& [request, says] : {std::pair{as(2, 4), "it is of 3 processes, and this is process 2 of 4"},
                                      std::pair{as(3, 4), "it is of 3 processes, and this is process 3 of 4"},
                                      std::pair{other_start, "its starter has given it another id"}}) {
    const Met refused = meet_as(request);
    EXPECT_EQ(refused.status.code(), Code::unavailable);
    EXPECT_THAT(refused.status.message(),
                AllOf(HasSubstr("another job meets at " + listener_.address), HasSubstr(says)));
  }
  SealedStream second = knock_as(1, 3);
  const Met twice = meet_as(as(1, 3));
  EXPECT_EQ(twice.status.code(), Code::unavailable);
  EXPECT_THAT(twice.status.message(), HasSubstr("process 1 has come already"));
  second.send("process 1");
  Met third = meet_as(as(2, 3));
  first.join();
  for (const Met* const one : {&host, &third}) {
    ASSERT_TRUE(one->status.is_ok()) << one->status.message();
    EXPECT_EQ(one->texts, (std::vector<std::string>{"process 0", "process 1", "process 2"}));
  }
}

TEST_F(TcpMeeting, ALineThatIsChangedOnTheWayEndsItByName) {
  Met host;
  std::thread first([&] { host = meet_as(as(0, 2)); });
  SealedStream guest = knock_as(1, 2);
  const std::string rubbish(100, 'x');
  ASSERT_EQ(send(guest.descriptor(), rubbish.data(), rubbish.size(), 0), 100);
  first.join();
  EXPECT_EQ(host.status.code(), Code::io);
  EXPECT_THAT(host.status.message(), AllOf(HasSubstr("process 1: "), HasSubstr("changed on the way")));
}

TEST_F(TcpMeeting, WhoWasTurnedAwayIsNamedWhereTheRightOneDoesNotCome) {
  Met host;
  std::thread first([&] { host = meet_as(as(0, 2, 600ms)); });
  EXPECT_EQ(meet_as(as(2, 3)).status.code(), Code::unavailable);
  first.join();
  EXPECT_EQ(host.status.code(), Code::timeout);
  EXPECT_THAT(host.status.message(), HasSubstr("of another job, or one too many, were process 2 of 3"));
}

TEST_F(TcpMeeting, AnotherMeetingOfTheJobIsNotThisOne) {
  MeetingRequest other = as(1, 2, 300ms);
  other.role = Role::meeting_of_links;
  Met refused;
  std::thread thread([&] { refused = meet_as(other); });
  EXPECT_EQ(meet_as(as(0, 2, 400ms)).status.code(), Code::timeout);
  thread.join();
  EXPECT_FALSE(refused.status.is_ok());
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
