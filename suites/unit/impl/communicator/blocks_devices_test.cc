// SPDX-License-Identifier: Apache-2.0
// Ranks as thread blocks on several devices: dealt in ranges, launched together, told by the device they wait on.
#include <array>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/unit/impl/communicator/blocks.h"

namespace tutti {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::StartsWith;

TEST(DevicesOfRanks, AreDealtInRanges) {
  const auto dealt = [](int ranks, int devices) {
    std::vector<int> all;
    for (int rank = 0; rank < ranks; ++rank) all.push_back(device_dealt(rank, ranks, devices));
    return all;
  };
  EXPECT_EQ(dealt(4, 2), (std::vector{0, 0, 1, 1}));
  EXPECT_EQ(dealt(5, 2), (std::vector{0, 0, 0, 1, 1}));
  EXPECT_EQ(dealt(3, 3), (std::vector{0, 1, 2}));
  EXPECT_EQ(dealt(7, 3), (std::vector{0, 0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(dealt(3, 1), (std::vector{0, 0, 0}));
}

TEST_F(Blocks, OnSeveralDevicesEachHasALaunchOfItsRanks) {
  for (const auto& [count, devices] : {std::pair{2, 2}, {5, 2}, {4, 4}}) {
    const TeamShape teams{.lanes = devices == 4 ? 1 : 2, .threads = devices == 4 ? 2 : 1};
    open(count, {.teams = teams, .devices = devices});
    const Device::Ticket before = device_.newest, others = others_[0].newest;
    const int sum = count * (count - 1) / 2;
    on_each([&](Communicator& mine) {
      for (int i = 0; i < 20; ++i) {
        const std::vector<std::int32_t> in(100, mine.rank() + i);
        std::vector<std::int32_t> out(100);
        ASSERT_TRUE(mine.all_reduce(in.data(), out.data(), 100, Dtype::i32, Op::sum).is_ok());
        ASSERT_THAT(out, Each(sum + count * i));
      }
      ASSERT_TRUE(mine.barrier().is_ok());
    });
    EXPECT_EQ(device_.newest, before + 21);
    EXPECT_EQ(others_[0].newest, others + 21);
  }
}

TEST_F(Blocks, AMessageGoesFromDeviceToDevice) {
  open(4, {.devices = 2});
  constexpr Count kLong = 100'000;  // more than all slots hold
  for (const auto& [from, to] : {std::pair{0, 3}, {3, 0}, {0, 1}, {2, 2}, {3, 2}}) {
    std::vector<float> sent(kLong), received(kLong);
    for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<float>(i % 1000);
    Work send = on(from).post_send(sent.data(), kLong, Dtype::f32, to).value();
    Work receive = on(to).post_recv(received.data(), kLong, Dtype::f32, from).value();
    EXPECT_TRUE(tested_until_over(receive).value());
    EXPECT_TRUE(tested_until_over(send).value());
    EXPECT_EQ(received, sent) << from << " to " << to;
  }
}

TEST_F(Blocks, AGroupLiesOnTheDevicesOfItsRanks) {
  open(6, {.devices = 3});
  // {5, 3, 1}: a rank of each device, the last one first; {4, 2, 0} too.
  const Device::Ticket before = others_[1].newest;
  on_each([](Communicator& mine) {
    auto group = mine.split(mine.rank() % 2, -mine.rank()).value();
    ASSERT_EQ(group->ranks(), 3);
    for (int i = 0; i < 10; ++i) {
      std::int32_t in = mine.rank() + i, out = 0;
      ASSERT_TRUE(group->all_reduce(&in, &out, 1, Dtype::i32, Op::sum).is_ok());
      ASSERT_EQ(out, 3 * i + (mine.rank() % 2 == 0 ? 6 : 9));
    }
  });
  EXPECT_EQ(others_[1].newest, before + 20);
  // Of one device alone: another one has nothing to do.
  const Device::Ticket others = others_[0].newest;
  on_each([](Communicator& mine) {
    auto group = mine.split(mine.rank() < 2 ? 0 : -1, 0).value();
    EXPECT_TRUE(group == nullptr || group->barrier().is_ok());
  });
  EXPECT_EQ(others_[0].newest, others);
}

/// Were the devices' launches in two orders, each would wait for what the other one has not begun.
TEST_F(Blocks, AllDevicesHaveTheLaunchesOfAllGroupsInOneOrder) {
  open(4, {.devices = 2});
  std::vector<std::unique_ptr<Communicator>> groups(4);
  on_each([&](Communicator& mine) {
    groups[static_cast<std::size_t>(mine.rank())] = mine.split(mine.rank() % 2, 0).value();  // both on both devices
  });
  on_each([&](Communicator& mine) {
    Communicator& group = *groups[static_cast<std::size_t>(mine.rank())];
    for (int i = 0; i < 200; ++i) ASSERT_TRUE(group.barrier().is_ok());
  });
}

/// The same where chance does not decide: a launch is held up between its two devices for as long as another group's
/// would need to overtake it. Of calls and of graphs.
TEST_F(Blocks, ALaunchThatIsHeldUpBetweenItsDevicesIsNotOvertaken) {
  open(4, {.timeout = seconds(10), .devices = 2});
  std::vector<std::unique_ptr<Communicator>> groups(4);
  std::vector<std::unique_ptr<CapturedCalls>> graphs(4);
  const auto group_of = [&](int rank) -> Communicator& { return *groups[static_cast<std::size_t>(rank)]; };
  on_each([&](Communicator& mine) {
    groups[static_cast<std::size_t>(mine.rank())] = mine.split(mine.rank() % 2, 0).value();
    Communicator& group = group_of(mine.rank());
    ASSERT_TRUE(group.begin_capture().is_ok());
    ASSERT_TRUE(group.post({.collective = Collective::barrier}).is_ok());
    graphs[static_cast<std::size_t>(mine.rank())] = group.end_capture().value();
  });
  for (const bool are_graphs : {false, true}) {
    std::atomic<int> arrived = 0;
    const Device::Ticket before = others_[0].newest;
    others_[0].before_launch = [&] {
      if (arrived++ > 0) return;
      const auto end = Clock::now() + milliseconds(300);
      while (others_[0].newest == before && Clock::now() < end) std::this_thread::yield();
    };
    on_each([&](Communicator& mine) {
      Communicator& group = group_of(mine.rank());
      Result<Work> work = are_graphs ? group.post_captured(*graphs[static_cast<std::size_t>(mine.rank())])
                                     : group.post({.collective = Collective::barrier});
      const Status status = work.is_ok() ? work.value().wait() : work.status();
      EXPECT_TRUE(status.is_ok()) << status.message();
    });
    EXPECT_EQ(arrived, 2);
  }
  others_[0].before_launch = {};
}

// ---- what does not work

TEST_F(Blocks, ALostSignalIsToldWithTheDevices) {
  for (const milliseconds timeout : {milliseconds(500), milliseconds(1'000'000)}) {
    open(2, {.timeout = timeout, .hooks = {.after_bind = silent(false)}, .devices = 2});
    std::vector<Work> works;
    for (const int rank : {0, 1}) works.push_back(on(rank).post(sum(rank)).value());
    for (Work& work : works) {
      const Status status = work.wait(timeout < seconds(1) ? milliseconds(50'000) : milliseconds(500));
      EXPECT_EQ(status.code(), Code::timeout);
      EXPECT_THAT(std::string(status.message()),
                  StartsWith("rank 0 gave up: operation 1 (all_reduce one_shot of 4 float, sum): waits for phase 1 of "
                             "rank 1, lane 0, rank 0 on device 0, rank 1 on device 1\n"));
    }
    EXPECT_TRUE(device_.is_idle() && others_[0].is_idle());
  }
}

TEST_F(Blocks, OtherCallsAreFoundBeforeAnyDeviceIsLaunched) {
  open(2, {.devices = 2});
  const Device::Ticket before = device_.newest;
  [[maybe_unused]] const Work first = on(0).post(sum(0, 4)).value();
  EXPECT_EQ(on(1).post(sum(1, 5)).status().code(), Code::mismatch);
  EXPECT_EQ(device_.newest, before);
}

TEST_F(Blocks, ADeviceThatIsNotLaunchedStopsTheOthers) {
  open(4, {.devices = 2});
  others_[0].refuses = true;
  std::vector<Work> works;
  for (const int rank : {0, 1, 2}) works.push_back(on(rank).post(sum(rank)).value());
  EXPECT_EQ(on(3).post(sum(3)).status().message(), "device 1: the device has failed");
  for (Work& work : works) EXPECT_EQ(work.test().status().message(), "device 1: the device has failed");
  EXPECT_TRUE(device_.is_idle()) << "its ranks wait for those of the other one";
  others_[0].refuses = false;
}

TEST_F(Blocks, ADeviceThatBreaksStopsTheOthersAtOnce) {
  for (const int broken : {0, 1}) {
    // Rank 1 is silent: on both devices others wait for it.
    open(4, {.timeout = seconds(1000), .hooks = {.after_bind = silent(false)}, .devices = 2});
    std::vector<Work> works;
    for (const int rank : {0, 1, 2, 3}) works.push_back(on(rank).post(sum(rank)).value());
    EXPECT_FALSE(works[0].test().value());
    (broken == 0 ? device_ : others_[0]).breaks = true;
    for (Work& work : works) {
      const auto tested = work.test();
      EXPECT_EQ(tested.status().code(), Code::io) << "device " << broken;
      EXPECT_EQ(tested.status().message(), fmt::format("device {}: the device has failed", broken));
    }
    EXPECT_TRUE((broken == 0 ? others_[0] : device_).is_idle()) << "its ranks still use what callers own";
    device_.breaks = others_[0].breaks = false;
    while (!device_.is_idle() || !others_[0].is_idle()) std::this_thread::yield();  // a GPU's would run no more
  }
}

/// All launches of a world stop where one has failed. What was stopped is no success.
TEST_F(Blocks, WhatAnotherLaunchHasStoppedIsNotComplete) {
  open(2, {.timeout = milliseconds(1000), .devices = 2});
  others_[0].loses = true;
  std::int32_t sent = 1, received = 0;
  Work send = on(1).post_send(&sent, 1, Dtype::i32, 0).value();
  Work receive = on(0).post_recv(&received, 1, Dtype::i32, 1).value();
  others_[0].loses = false;
  std::this_thread::sleep_for(milliseconds(700));  // the message's deadline is the first
  std::vector<Work> works;
  for (const int rank : {0, 1}) works.push_back(on(rank).post(sum(rank)).value());
  for (Work* const work : {&works[0], &works[1], &send, &receive}) {
    const Status status = work->wait(seconds(60));
    EXPECT_EQ(status.code(), Code::timeout);
    EXPECT_THAT(std::string(status.message()), StartsWith("rank 0 gave up: receive of 1 int32 (4 bytes) from rank 1"))
        << "the call is the first one, too";
  }
  EXPECT_TRUE(device_.is_idle() && others_[0].is_idle());
}

TEST_F(Blocks, LackOfMemoryOnOneDeviceIsAnError) {
  open(2, {.devices = 2});
  communicators_.clear();
  EXPECT_EQ(device_.live + others_[0].live, 0);
  const auto domain = local::open_domain(local::shape_for(2)).value();
  for (const int allocations : {0, 1}) {
    others_[0].left = allocations;
    const auto made = create_as_blocks(*domain, devices(2), {}, {});
    EXPECT_EQ(made.status().code(), Code::resource) << allocations;
    EXPECT_EQ(device_.live + others_[0].live, 0);
  }
  others_[0].left = -1;
}

TEST_F(Blocks, MoreDevicesThanRanksAreRefusedWithTheNumbers) {
  open(3, {.devices = 3});
  const auto domain = local::open_domain(local::shape_for(2)).value();
  EXPECT_EQ(create_as_blocks(*domain, devices(3), {}, {}).status().message(), "3 devices for 2 ranks: 1 to 2");
  EXPECT_EQ(create_as_blocks(*domain, std::vector<Device*>(), {}, {}).status().code(), Code::invalid_argument);
}

TEST_F(Blocks, DevicesThatDoNotReachEachOtherAreRefused) {
  class Alone final : public Device {
   public:
    [[nodiscard]] std::string name() const override { return "alone"; }
    Result<std::byte*> allocate(std::size_t) override { return error(Code::resource, "nothing is allocated"); }
    Result<std::byte*> allocate_mapped(std::size_t bytes) override { return allocate(bytes); }
    void release(std::byte*) override {}
    Status reach(Device& other) override { return error(Code::unavailable, "it does not reach the {}", other.name()); }
    Status write(std::byte*, const void*, std::size_t) override { return {}; }
    [[nodiscard]] int usual_threads() const override { return 1; }
    Status fits(int, int) override { return {}; }
    Result<Ticket> launch(DeviceLaunch) override { return Ticket{1}; }
    Result<std::unique_ptr<DeviceGraph>> record(std::vector<DeviceLaunch>) override {
      return std::unique_ptr<DeviceGraph>();
    }
    Result<Ticket> replay(DeviceGraph&) override { return Ticket{1}; }
    Result<bool> is_complete(Ticket) override { return true; }
  };
  Alone alone;
  const auto domain = local::open_domain(local::shape_for(2)).value();
  Device* const both[] = {&device_, &alone};
  EXPECT_EQ(create_as_blocks(*domain, both, {}, {}).status().message(),
            "it does not reach the teams of threads of the host");
}

}  // namespace
}  // namespace tutti
