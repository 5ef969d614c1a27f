// SPDX-License-Identifier: Apache-2.0
// The transport over RDMA, on a double of libibverbs: all ranks in this process. What real devices make of it is for
// ci/soft-roce.
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "impl/transports/shared_memory.h"
#include "impl/transports/verbs/devices.h"
#include "impl/transports/verbs/domain.h"
#include "suites/transports/double_ibverbs.h"
#include "suites/unit/impl/communicator/hosts.h"

namespace tutti {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using verbs::Port;

// ---- which device

Port port_of(const std::string& device, const std::string& address) {
  return {.device = device, .gid = verbs::gid_of(address).value(), .address = address};
}

TEST(VerbsDevices, AnAddressIsAGidAndBack) {
  const verbs::Gid gid = verbs::gid_of("10.78.0.1").value();
  EXPECT_EQ(gid, (verbs::Gid{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 78, 0, 1}));
  for (const char* const address : {"10.78.0.1", "2001:db8::7", "fe80::1"}) {
    EXPECT_EQ(verbs::to_text(verbs::gid_of(address).value()), address);
  }
  EXPECT_THAT(verbs::gid_of("eth0").status().message(), HasSubstr("'eth0' is no address"));
}

TEST(VerbsDevices, ComeInOrderWithoutAddressesThatNobodyRoutesTo) {
  const Port local = port_of("b", "fe80::1"), six = port_of("b", "2001:db8::7"), four = port_of("b", "10.0.0.2");
  const Port only = port_of("a", "fe80::2");
  EXPECT_THAT(verbs::in_order({local, six, four, only}), testing::ElementsAre(only, four, six));
}

TEST(VerbsDevices, TheOneThatHasTheAddressIsTakenAndElseAllAreNamed) {
  const std::vector<Port> ports{port_of("a", "10.0.0.1"), port_of("b", "10.0.0.2"), port_of("b", "2001:db8::7")};
  EXPECT_EQ(verbs::port_at(ports, "10.0.0.2").value(), ports[1]);
  EXPECT_EQ(verbs::port_at(ports, "2001:db8::7").value(), ports[2]);
  const Status unknown = verbs::port_at(ports, "10.0.0.3").status();
  EXPECT_EQ(unknown.code(), Code::unavailable);
  EXPECT_THAT(unknown.message(), AllOf(HasSubstr("10.0.0.3"), HasSubstr("a port 1 (10.0.0.1), b port 1 (10.0.0.2)"),
                                       HasSubstr("--interface")));
}

TEST(VerbsDevices, OfInfiniBandHaveTheAddressOfTheirInterface) {
  Port port = port_of("mlx5_0", "fe80::9");
  port.is_ethernet = false;
  port.address = "10.1.0.9";
  EXPECT_EQ(verbs::port_at({{port}}, "10.1.0.9").value(), port);
  EXPECT_FALSE(verbs::port_at({{port}}, "fe80::9").is_ok());
  EXPECT_THAT(verbs::in_order({port}), testing::ElementsAre(port));
}

TEST(VerbsDevices, HostsThatArePretendedTakeTurns) {
  const std::vector<Port> ports{port_of("a", "10.0.0.1"), port_of("a", "10.0.0.9"), port_of("b", "10.0.0.2")};
  EXPECT_EQ(verbs::port_of_host(ports, 0), ports[0]);
  EXPECT_EQ(verbs::port_of_host(ports, 1), ports[2]);
  EXPECT_EQ(verbs::port_of_host(ports, 2), ports[0]);
}

TEST(VerbsDevices, OfThisMachineAreThoseOfRoCEVersion2) {
  const auto ports = verbs::ports_here().value();
  ASSERT_EQ(ports.size(), 2U);
  EXPECT_EQ(verbs::to_text(ports[0]), "double0 port 1 (10.78.0.1)");
  EXPECT_EQ(ports[0].gid_index, 2);
  EXPECT_EQ(verbs::transport().devices({}).value(), "double0 port 1 (10.78.0.1), double1 port 1 (10.78.0.2)");
}

// ---- ranks

class Verbs : public testing::Test {
 protected:
  void TearDown() override {
    doubles::stall(false);
    doubles::break_after(-1);
    EXPECT_EQ(doubles::open_objects(), 0);
    EXPECT_EQ(doubles::mistakes(), 0);
  }
  static RanksOn ranks(int ranks, int hosts, std::chrono::nanoseconds timeout = 20s) {
    const DomainShape shape = shape_across_hosts(ranks, hosts, 0);
    return RanksOn(verbs::open_in_process(shape, Hosts::in_blocks(ranks, hosts)).value(), timeout);
  }
  static void sum_on(RanksOn& world, Count count, const Schedule* schedule, int repetitions = 1) {
    for (int i = 0; i < repetitions; ++i) {
      Sums sums(world.ranks(), count, i);
      world.in_threads([&](int rank) {
        const Status done = world.on(rank).run(sums.call(rank, schedule));
        EXPECT_TRUE(done.is_ok()) << done.message();
      });
      EXPECT_TRUE(sums.are_right()) << count << " elements on " << world.ranks();
    }
  }
};

TEST_F(Verbs, SumsAreRightOnAnySplitOfHosts) {
  for (int ranks = 2; ranks <= 5; ++ranks) {
    for (int hosts = 1; hosts <= std::min(ranks, 3); ++hosts) {
      RanksOn world = Verbs::ranks(ranks, hosts);
      for (const char* const name : {"ring", "halving", "recursive_doubling"}) {
        const Schedule schedule = schedule_named(Collective::all_reduce, name, ranks);
        for (const Count count : {0, 11, 40'000}) sum_on(world, count, &schedule);
      }
      if (ranks <= 3) sum_on(world, 300'000, nullptr);
    }
  }
}

TEST_F(Verbs, ManyMessagesArriveInTheirOrder) {
  constexpr int kRanks = 3;
  RanksOn world = ranks(kRanks, kRanks);
  const std::vector<Count> counts{200'000, 0, 5, 16'384, 1, 300'000};
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
      EXPECT_EQ(received[i], std::vector<std::int32_t>(static_cast<std::size_t>(count),
                                                       1000 * peer + 10 * rank + static_cast<int>(count % 7)));
    }
  });
}

// Lines are told while the device takes nothing: more of them than it has room for, and each as it was when it was
// told.
TEST_F(Verbs, WhatThereIsNoRoomForYetIsKeptAndComesInItsOrder) {
  RanksOn world = ranks(2, 2);
  sum_on(world, 100, nullptr);
  Domain& mine = world.domain().seen_by(0);
  FlagLine& line = mine.seat(0).lines[1];
  const FlagLine& arrived = world.domain().seen_by(1).seat(0).lines[1];
  const std::uint64_t before = arrived.flag.load();
  doubles::stall(true);
  for (std::uint64_t i = 1; i <= 500; ++i) {
    line.hash = i;
    line.flag.store(before + i);
    mine.link(1)->announce(1);
  }
  mine.network()->send(Mood::idle);
  EXPECT_EQ(arrived.flag.load(), before);
  EXPECT_FALSE(mine.network()->is_drained());
  line.hash = 0;  // what was told is not what stands here now
  doubles::stall(false);
  for (int i = 0; i < 1000 && !mine.network()->is_drained(); ++i) mine.network()->send(Mood::busy);
  EXPECT_TRUE(mine.network()->is_drained());
  EXPECT_EQ(arrived.flag.load(), before + 500);
  EXPECT_EQ(arrived.hash, 500U);
}

TEST_F(Verbs, APeerThatTakesNothingAnyMoreIsNamed) {
  RanksOn world = ranks(2, 2, 10s);
  sum_on(world, 100, nullptr);
  doubles::break_after(50);
  std::atomic<int> named = 0;
  world.in_threads([&](int rank) {
    for (int i = 0; i < 1000; ++i) {
      Sums sums(2, 2000, 1);
      const Status done = world.on(rank).run(sums.call(rank, nullptr));
      if (done.is_ok()) continue;
      EXPECT_EQ(done.code(), Code::aborted);
      EXPECT_THAT(done.message(), AnyOf(HasSubstr("rank 0 on host 0"), HasSubstr("rank 1 on host 1")));
      if (done.message().find("retry counter exceeded") != std::string::npos) ++named;
      return;
    }
    ADD_FAILURE() << "rank " << rank << " has not noticed";
  });
  EXPECT_GE(named, 1);
}

// A call is over when the device has what it told. Who leaves waits until the peer has it.
// TearDown looks whether anything of their devices is left.
TEST_F(Verbs, GroupsOnSeveralHosts) {
  RanksOn world = ranks(4, 3);  // ranks 0 and 1 share memory
  world.in_threads([&](int rank) {
    for (int i = 0; i < 20; ++i) {
      const auto group = world.on(rank).new_group(std::array{3, 0, 1});
      ASSERT_TRUE(group.is_ok()) << group.status().message();
      ASSERT_EQ(group.value() == nullptr, rank == 2);
      if (rank == 2) continue;
      std::vector<std::int32_t> in(40'000, rank + 1), out(in.size(), -1);
      for (const Count count : {1, 40'000}) {
        const Status done = group.value()->all_reduce(in.data(), out.data(), count, Dtype::i32, Op::sum);
        ASSERT_TRUE(done.is_ok()) << done.message();
        ASSERT_EQ(std::ranges::count(out, 7), count);
      }
      ASSERT_TRUE(group.value()->barrier().is_ok());
    }
  });
}

TEST_F(Verbs, WhoLeavesLeavesNothingUnsaid) {
  const DomainShape shape = shape_across_hosts(2, 2, 0);
  const Transport& transport = verbs::transport();
  const int memory = create_memory("tutti-test", transport.shared_bytes(shape, RanksIn::own_processes)).value();
  const CommunicatorOptions options{.waiting = Waiting::yield, .timeout = 10s, .prove_plans = false};
  const std::vector<std::int32_t> sent(100'000, 5);
  std::vector<std::int32_t> received(100'000, -1);
  std::thread first([&] {
    auto domain = transport.open(shape, {.memory = memory, .rank = 0, .timeout = 10s}).value();
    auto communicator = Communicator::create(*domain, 0, options).value();
    EXPECT_TRUE(communicator->send(sent.data(), 10, Dtype::i32, 1).is_ok());
    doubles::stall(true);
    std::thread later([] {
      std::this_thread::sleep_for(200ms);
      doubles::stall(false);
    });
    EXPECT_TRUE(communicator->send(sent.data(), 100'000, Dtype::i32, 1).is_ok());
    communicator.reset();
    domain.reset();
    later.join();
  });
  const auto domain = transport.open(shape, {.memory = memory, .rank = 1, .timeout = 10s}).value();
  const auto communicator = Communicator::create(*domain, 1, options).value();
  EXPECT_TRUE(communicator->recv(received.data(), 10, Dtype::i32, 0).is_ok());
  const Status done = communicator->recv(received.data(), 100'000, Dtype::i32, 0);
  EXPECT_TRUE(done.is_ok()) << done.message();
  first.join();
  EXPECT_EQ(received, sent);
  close(memory);
}

}  // namespace
}  // namespace tutti
