// SPDX-License-Identifier: Apache-2.0
// Ranks on pretended hosts with TCP between them: all in this process, or each a process that may be killed or stopped.
#include <atomic>
#include <csignal>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "impl/tcp/socket.h"
#include "impl/transports/tcp/domain.h"
#include "suites/unit/impl/communicator/groups.h"
#include "suites/unit/impl/communicator/hosts.h"
#include "suites/unit/impl/communicator/tcp_processes.h"

namespace tutti {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

RanksOn ranks_over_tcp(int ranks, int hosts, const std::string& interface = "127.0.0.1", const tcp::Route& route = {},
                       std::chrono::nanoseconds timeout = 20s) {
  const DomainShape shape = shape_across_hosts(ranks, hosts, 0);
  return RanksOn(tcp::open_in_process(shape, Hosts::in_blocks(ranks, hosts), interface, route).value(), timeout);
}

/// One call of each rank, in a thread of its own; `auto` chooses where there is no schedule.
void sum_on(RanksOn& world, Count count, const Schedule* schedule, int repetitions = 1) {
  for (int i = 0; i < repetitions; ++i) {
    Sums sums(world.ranks(), count, i);
    world.in_threads([&](int rank) {
      const Status done = world.on(rank).run(sums.call(rank, schedule));
      EXPECT_TRUE(done.is_ok()) << done.message();
    });
    EXPECT_TRUE(sums.are_right()) << count << " elements on " << world.ranks();
  }
}

TEST(Tcp, SumsAreRightOnAnySplitOfHosts) {
  for (int ranks = 2; ranks <= 8; ++ranks) {
    for (int hosts = 1; hosts <= std::min(ranks, 4); ++hosts) {
      RanksOn world = ranks_over_tcp(ranks, hosts);
      for (const char* const name : {"ring", "halving", "recursive_doubling"}) {
        const Schedule schedule = schedule_named(Collective::all_reduce, name, ranks);
        for (const Count count : {0, 11, 40'000}) sum_on(world, count, &schedule);
      }
      if (ranks <= 4) sum_on(world, 300'000, nullptr);
    }
  }
}

TEST(Tcp, OverIPv6) {
  if (!tcp::listen_on("::1").is_ok()) GTEST_SKIP() << "no ::1 here";
  RanksOn world = ranks_over_tcp(3, 3, "::1");
  sum_on(world, 70'000, nullptr, 3);
}

TEST(Tcp, HostsNeedNotBeInBlocks) {
  const Hosts hosts(std::vector{0, 1, 0, 1, 2});
  RanksOn world(tcp::open_in_process(shape_across_hosts(5, 3, 0), hosts).value());
  sum_on(world, 70'000, nullptr, 3);
}

TEST(Tcp, MessagesOfAnyLengthArriveInTheirOrder) {
  constexpr int kRanks = 4;
  RanksOn world = ranks_over_tcp(kRanks, 3);
  const std::vector<Count> counts{200'000, 0, 5, 16'384, 1, 700'000};
  world.in_threads([&](int rank) {
    std::vector<std::vector<std::int32_t>> sent, received;
    std::vector<Work> works;
    for (const Count count : counts) {
      for (int peer = 0; peer < kRanks; ++peer) {
        sent.emplace_back(static_cast<std::size_t>(count), 1000 * rank + 10 * peer + static_cast<int>(count % 7));
        received.emplace_back(static_cast<std::size_t>(count), -1);
        works.push_back(world.on(rank).post_recv(received.back().data(), count, Dtype::i32, peer).value());
        works.push_back(world.on(rank).post_send(sent.back().data(), count, Dtype::i32, peer).value());
      }
    }
    for (Work& work : works) {
      const Status done = work.wait(20s);
      EXPECT_TRUE(done.is_ok()) << done.message();
    }
    for (std::size_t i = 0; i < received.size(); ++i) {
      const auto peer = static_cast<int>(i % kRanks);
      const Count count = counts[i / kRanks];
      const std::vector<std::int32_t> expected(static_cast<std::size_t>(count),
                                               1000 * peer + 10 * rank + static_cast<int>(count % 7));
      EXPECT_EQ(received[i], expected);
    }
  });
}

TEST(Tcp, ARingThatNeedsAllSlotsGoesOnThoughCountsTakeAnotherWay) {
  constexpr int kRanks = 3;
  const Schedule ring = schedule_named(Collective::all_reduce, "ring", kRanks);
  DomainShape shape = shape_across_hosts(kRanks, kRanks, 0);
  shape.slot_bytes = 256;
  shape.slots = ring.least_slots(7);
  RanksOn world(tcp::open_in_process(shape, Hosts::in_blocks(kRanks, kRanks)).value(), 5s);
  sum_on(world, 7 * 64 * kRanks, &ring, 10);
}

// A rank that turns to something else after its call is not asked again for what the call told.
TEST(Tcp, ACallThatIsOverHasLeftThisRank) {
  for (int i = 0; i < 5; ++i) {
    RanksOn world = ranks_over_tcp(2, 2, "127.0.0.1", {}, 3s);
    std::vector<std::int32_t> sent(50'000, i), received(50'000, -1);
    std::thread other([&] {
      const Status done = world.on(1).recv(received.data(), 50'000, Dtype::i32, 0);
      EXPECT_TRUE(done.is_ok()) << done.message();
    });
    EXPECT_TRUE(world.on(0).send(sent.data(), 50'000, Dtype::i32, 1).is_ok());
    other.join();  // while rank 0 makes no call
    EXPECT_EQ(received, sent);
  }
}

// A rank that does not look for messages for a while keeps no more than the slots and the kernel's buffers.
TEST(Tcp, WhoSendsMoreThanIsTakenWaits) {
  RanksOn world = ranks_over_tcp(2, 2);
  constexpr Count kCount = 4 << 20;  // 16 MiB, of which a channel holds half of one
  std::vector<std::int32_t> sent(kCount, 7), received(kCount, -1);
  auto send = world.on(0).post_send(sent.data(), kCount, Dtype::i32, 1).value();
  for (int i = 0; i < 2000; ++i) ASSERT_FALSE(send.test().value());
  std::thread other([&] {
    const Status done = world.on(1).recv(received.data(), kCount, Dtype::i32, 0);
    EXPECT_TRUE(done.is_ok()) << done.message();
  });
  EXPECT_TRUE(send.wait(20s).is_ok());
  other.join();
  EXPECT_EQ(received, sent);
}

/// Hands on what goes to and fro, a few bytes at a time.
class Relay {
 public:
  explicit Relay(std::string to, std::size_t piece)
      : to_(std::move(to)), piece_(piece), listener_(tcp::listen_on("127.0.0.1").value()), thread_([this] { run(); }) {}
  ~Relay() {
    stops_ = true;
    thread_.join();
  }
  [[nodiscard]] const std::string& address() const { return listener_.address; }

 private:
  void run() {
    Descriptor here, there;
    while (!stops_) {
      if (!here.is_open()) {
        here = tcp::accept_from(listener_.socket.get());
        if (here.is_open()) there = tcp::connect_to(to_).value();
        std::this_thread::sleep_for(1ms);
        continue;
      }
      std::array<pollfd, 2> sockets{pollfd{.fd = here.get(), .events = POLLIN, .revents = 0},
                                    pollfd{.fd = there.get(), .events = POLLIN, .revents = 0}};
      ::poll(sockets.data(), sockets.size(), 10);
      if (!pass(here, there) || !pass(there, here)) {
        here.close();
        there.close();
      }
    }
  }
  /// One piece; false at the end.
  [[nodiscard]] bool pass(const Descriptor& from, const Descriptor& to) const {
    std::array<char, 64> bytes{};
    const ssize_t n = recv(from.get(), bytes.data(), piece_, MSG_DONTWAIT);
    if (n == 0) return false;
    for (ssize_t done = 0; done < n;) {
      const ssize_t sent = send(to.get(), bytes.data() + done, static_cast<std::size_t>(n - done), MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN) return false;
      done += std::max<ssize_t>(sent, 0);
    }
    return true;
  }

  std::string to_;
  std::size_t piece_;
  tcp::Listener listener_;
  std::atomic<bool> stops_ = false;
  std::thread thread_;
};

TEST(Tcp, ASocketThatTakesAFewBytesAtATime) {
  for (const std::size_t piece : {1U, 7U}) {
    std::vector<std::unique_ptr<Relay>> relays;
    const tcp::Route through = [&](int, int, const std::string& address) {
      return relays.emplace_back(std::make_unique<Relay>(address, piece))->address();
    };
    RanksOn world = ranks_over_tcp(2, 2, "127.0.0.1", through);
    const Schedule schedule = schedule_named(Collective::all_reduce, "halving", 2);
    for (const Count count : {1, 11, 700}) sum_on(world, count, &schedule, 2);
  }
}

TEST(Tcp, StrangersAtTheDoorKeepNobodyOut) {
  std::vector<std::string> doors;
  RanksOn world = ranks_over_tcp(2, 2, "127.0.0.1", [&](int, int, const std::string& address) {
    doors.push_back(address);
    return address;
  });
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 300; ++i) {
    auto one = tcp::connect_to(doors[static_cast<std::size_t>(i) % doors.size()]);
    if (!one.is_ok()) continue;
    if (i % 3 == 0) (void)send(one.value().get(), "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL);
    strangers.push_back(std::move(one).value());
  }
  sum_on(world, 1000, nullptr, 5);
}

TEST(Tcp, WhoBeginsToSpeakAndGoesOnCallingKeepsNobodyOut) {
  const std::string most_of_a_claim(79, 'x');
  for (int i = 0; i < 3; ++i) {
    std::vector<std::string> doors;
    RanksOn world = ranks_over_tcp(2, 2, "127.0.0.1", [&](int, int, const std::string& address) {
      doors.push_back(address);
      return address;
    });
    std::atomic<int> called = 0;
    std::thread strangers([&] {
      std::vector<Descriptor> all;
      for (; called < 1000; ++called) {
        auto one = tcp::connect_to(doors[static_cast<std::size_t>(called) % doors.size()]);
        if (!one.is_ok()) continue;
        (void)send(one.value().get(), most_of_a_claim.data(), most_of_a_claim.size(), MSG_NOSIGNAL);
        all.push_back(std::move(one).value());
      }
    });
    while (called < 20) std::this_thread::yield();
    sum_on(world, 1000, nullptr);
    strangers.join();
  }
}

TEST(Tcp, DescriptorsReturn) {
  const std::ptrdiff_t before = open_descriptors();
  for (int i = 0; i < 20; ++i) {
    RanksOn world = ranks_over_tcp(3, 3);
    sum_on(world, 100, nullptr);
  }
  EXPECT_EQ(open_descriptors(), before);
}

// The last one to leave has heard everything: nobody resets a connection over which something is still on its way.
TEST(Tcp, WhoLeavesLeavesNothingUnsaid) {
  for (int i = 0; i < 20; ++i) {
    auto domain = tcp::open_in_process(shape_across_hosts(2, 2, 0), Hosts::in_blocks(2, 2)).value();
    RanksOn world(std::move(domain));
    std::vector<std::int32_t> sent(100'000, 5), received(100'000, -1);
    std::thread first([&] {
      EXPECT_TRUE(world.on(0).send(sent.data(), 100'000, Dtype::i32, 1).is_ok());
      world.leave(0);
    });
    const Status done = world.on(1).recv(received.data(), 100'000, Dtype::i32, 0);
    EXPECT_TRUE(done.is_ok()) << done.message();
    first.join();
    EXPECT_EQ(received, sent);
  }
}

// What lies unread at a rank that leaves would reset the connection, and with it what is still on its way from there.
TEST(TcpProcesses, WhoLeavesTakesNothingBack) {
  constexpr Count kCount = 100'000;
  const auto act = [](Communicator& communicator) -> std::string {
    std::vector<std::int32_t> values(kCount, 5);
    const bool is_first = communicator.rank() == 0;
    if (is_first) {
      const Status sent = communicator.send(values.data(), kCount, Dtype::i32, 1);
      std::this_thread::sleep_for(100ms);  // a message comes that nobody asks for
      return sent.is_ok() ? "has sent" : sent.message();
    }
    std::ranges::fill(values, -1);
    std::int32_t unasked = 7;
    auto first = communicator.post_send(&unasked, 1, Dtype::i32, 0).value();
    const Status told = first.wait(5s);
    std::this_thread::sleep_for(300ms);  // by then the other one is gone
    const Status received = communicator.recv(values.data(), kCount, Dtype::i32, 0);
    const bool is_right = std::ranges::all_of(values, [](std::int32_t value) { return value == 5; });
    return told.is_ok() && received.is_ok() && is_right ? "has received" : told.message() + received.message();
  };
  Processes ranks(2, 2, 5s, act);
  EXPECT_THAT(ranks.hear(2, 10s), testing::UnorderedElementsAre("0: has sent", "1: has received"));
}

TEST(TcpProcesses, WhoIsKilledIsNamedWithinASecond) {
  Processes ranks(4, 3, 30s);
  ASSERT_EQ(ranks.hear(4, 10s).size(), 4U);
  ranks.signal_to(3, SIGKILL);
  const std::vector<std::string> heard = ranks.hear(3, 1000ms);
  ASSERT_EQ(heard.size(), 3U);
  for (const std::string& one : heard) {
    EXPECT_THAT(one, AnyOf(HasSubstr("rank 3 on host 2 went"), HasSubstr("rank 3 on host 2 failed")));
  }
}

// Of two ranks of a host the first that hears of a failure tells the other, and both tell the other hosts.
TEST(Tcp, TheFailureOfAnotherHostIsPassedOnUnderItsName) {
  RanksOn world = ranks_over_tcp(4, 3);  // ranks 0 and 1 share a host
  sum_on(world, 1000, nullptr);
  std::thread second([&] {
    std::int32_t value = 0;
    const Status done = world.on(2).recv(&value, 1, Dtype::i32, 0);
    EXPECT_THAT(done.message(), HasSubstr("rank 3 on host 2 failed"));
  });
  world.domain().seen_by(0).abort_line().word = 3 + 1;  // as rank 1 would write it
  std::int32_t value = 0;
  const Status done = world.on(0).recv(&value, 1, Dtype::i32, 2);
  EXPECT_THAT(done.message(), HasSubstr("rank 3 on host 2 failed"));
  second.join();
}

TEST(TcpProcesses, WhoIsStoppedIsNamedAtTheDeadline) {
  Processes ranks(2, 2, 500ms);
  ASSERT_EQ(ranks.hear(2, 10s).size(), 2U);
  ranks.signal_to(1, SIGSTOP);
  const std::vector<std::string> heard = ranks.hear(1, 2000ms);
  ASSERT_EQ(heard.size(), 1U);
  EXPECT_THAT(heard.front(), AllOf(HasSubstr("0: rank 0 on host 0 gave up"), HasSubstr("rank 1 on host 1")));
  ranks.signal_to(1, SIGCONT);
  EXPECT_THAT(ranks.hear(1, 2000ms), testing::ElementsAre(HasSubstr("rank 0 on host 0")));
}

// Its reason is its own, and told elsewhere: here it is no more than gone.
TEST(TcpProcesses, WhoIsGoneBeforeItsFirstWordIsNamed) {
  const auto act = [](Communicator& communicator) -> std::string {
    if (communicator.rank() == 1) return "has left";
    std::this_thread::sleep_for(300ms);                 // by then the other one is gone
    const std::vector<std::int32_t> values(1'000'000);  // more than lies on the way
    const Status sent = communicator.send(values.data(), 1'000'000, Dtype::i32, 1);
    return fmt::format("{} {}", sent.code() == Code::aborted ? "aborted" : "otherwise", sent.message());
  };
  Processes ranks(2, 2, 5s, act);
  EXPECT_THAT(
      ranks.hear(2, 10s),
      testing::UnorderedElementsAre("1: has left", HasSubstr("0: aborted rank 1 on host 1 went: no process listens")));
}

// ---- groups on several hosts

TEST(TcpProcesses, AMemberThatIsKilledIsNamedInTheGroup) {
  const auto act = [](Communicator& world) -> std::string {
    const auto group = world.new_group(std::array{3, 0, 2});
    if (!group.is_ok()) return group.status().message();
    if (group.value() == nullptr) return "is no member";
    for (int i = 0;; ++i) {
      const Status done = group.value()->barrier();
      if (!done.is_ok()) return done.message();
      if (i == 5 && world.rank() == 3) kill(getpid(), SIGKILL);
    }
  };
  Processes ranks(4, 3, 30s, act);
  const auto names_it = AnyOf(HasSubstr("rank 0 of the group (rank 3 on host 2 of the world) went"),
                              HasSubstr("rank 0 of the group (rank 3 on host 2 of the world) failed"));
  EXPECT_THAT(ranks.hear(3, 10s),
              testing::UnorderedElementsAre(AllOf(testing::StartsWith("0: "), names_it), "1: is no member",
                                            AllOf(testing::StartsWith("2: "), names_it)));
}

// No connection of the group breaks: none was made. The world's does.
TEST(TcpProcesses, AMemberThatIsKilledBeforeItsFirstWordInTheGroupIsNamedThere) {
  const auto act = [](Communicator& world) -> std::string {
    std::int32_t word = 1;
    if (world.rank() == 0) {
      if (!world.send(&word, 1, Dtype::i32, 1).is_ok()) return "cannot send";
    } else if (!world.recv(&word, 1, Dtype::i32, 0).is_ok()) {
      return "cannot receive";
    }
    const auto group = world.new_group(std::array{0, 1});
    if (!group.is_ok()) return group.status().message();
    if (world.rank() == 1) kill(getpid(), SIGKILL);
    return group.value()->recv(&word, 1, Dtype::i32, 1).message();
  };
  Processes ranks(2, 2, 30s, act);
  EXPECT_THAT(
      ranks.hear(1, 5s),
      testing::ElementsAre("0: rank 1 of the group (rank 1 on host 1 of the world) went: the world has lost it"));
}

TEST(TcpProcesses, WhoIsKilledWhileAGroupIsFormedIsNamed) {
  const auto act = [](Communicator& world) -> std::string {
    for (int i = 0;; ++i) {
      if (i == 3 && world.rank() == 3) kill(getpid(), SIGKILL);
      const auto group = world.split(world.rank() % 2, 0);
      if (!group.is_ok()) return group.status().message();
      if (!group.value()->barrier().is_ok()) return "a barrier failed";
    }
  };
  Processes ranks(4, 3, 30s, act);
  const std::vector<std::string> heard = ranks.hear(3, 5s);
  ASSERT_EQ(heard.size(), 3U);
  for (const std::string& one : heard) {
    EXPECT_THAT(
        one, AnyOf(HasSubstr("rank 3 on host 2 went"), HasSubstr("rank 3 on host 2 failed"), HasSubstr("a barrier")));
  }
}

TEST(TcpProcesses, WhoHangsUpIsNamed) {
  Processes ranks(2, 2, 30s);
  ASSERT_EQ(ranks.hear(2, 10s).size(), 2U);
  ranks.signal_to(1, SIGTERM);  // nobody handles it
  EXPECT_THAT(ranks.hear(1, 1000ms), testing::ElementsAre(HasSubstr("rank 1 on host 1 went")));
}

}  // namespace
}  // namespace tutti
