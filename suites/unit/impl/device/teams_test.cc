// SPDX-License-Identifier: Apache-2.0
#include "impl/device/teams.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kReservesShadow = true;
#else
constexpr bool kReservesShadow = false;
#endif

/// Pages of this process that are there.
std::size_t resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::size_t>(usage.ru_maxrss) * 1024;
}

TEST(HostTeams, MemoryIsZeroedAndAligned) {
  const auto device = make_host_teams();
  for (const std::size_t bytes : {0U, 1U, 1000U, 4U << 20U}) {
    const DeviceMemory memory = DeviceMemory::make(*device, bytes).value();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.get()) % kDeviceLine, 0U);
    EXPECT_TRUE(std::all_of(memory.get(), memory.get() + bytes, [](std::byte one) { return one == std::byte{0}; }));
    std::fill_n(memory.get(), bytes, std::byte{1});
  }
  const DeviceMemory mapped = DeviceMemory::make_mapped(*device, 64).value();
  const std::uint64_t word = 7;
  EXPECT_TRUE(device->write(mapped.get(), &word, sizeof word).is_ok());
  EXPECT_EQ(*mapped.as<std::uint64_t>(), 7U);
}

TEST(HostTeams, MemoryThatNobodyTouchesIsNotTaken) {
  const auto device = make_host_teams();
  const std::size_t before = resident_bytes();
  const DeviceMemory memory = DeviceMemory::make(*device, std::size_t{1} << 32U).value();
  memory.get()[std::size_t{1} << 31U] = std::byte{1};
  EXPECT_LT(resident_bytes(), before + (std::size_t{1} << 28U));
}

TEST(HostTeams, LackOfMemoryIsAnErrorWithTheNumber) {
  const auto device = make_host_teams();
  const auto memory = device->allocate(std::size_t{1} << 60U);
  EXPECT_EQ(memory.status().code(), Code::resource);
  EXPECT_EQ(memory.status().message(), "no memory for 1152921504606846976 bytes of the ranks' teams");
}

TEST(HostTeams, AFunctionIsRunByEveryThreadOfEveryTeam) {
  const auto device = make_host_teams();
  std::vector<std::atomic<int>> seen(6);
  const auto ticket = device->run({.teams = 3, .threads = 2}, [&seen](HostTarget& target, int team) {
    const bool has_first = target.any(target.thread() == 0);  // all threads of the team meet
    seen[static_cast<std::size_t>(team * 2 + target.thread())] += has_first && target.threads() == 2 ? 1 : 100;
  });
  while (!device->is_complete(ticket.value()).value()) std::this_thread::yield();
  for (const std::atomic<int>& one : seen) EXPECT_EQ(one.load(), 1);
  EXPECT_EQ(device->run({.teams = 1025, .threads = 1}, [](HostTarget&, int) {}).status().code(), Code::resource);
}

TEST(HostTeams, TooManyThreadsAreRefusedWithTheNumbers) {
  const auto device = make_host_teams();
  EXPECT_TRUE(device->fits(1024, 1).is_ok());
  EXPECT_TRUE(device->fits(1, 1024).is_ok());
  for (const auto& [teams, threads] : {std::pair{1025, 1}, {513, 2}, {1, 1025}, {2'000'000, 2000}}) {
    EXPECT_EQ(device->fits(teams, threads).code(), Code::resource);
  }
  EXPECT_EQ(device->fits(2'000'000, 2000).message(),
            "2000000 blocks of 2000 threads are 4000000000 threads of the host: at most 1024");
}

/// Where no memory is left for the stack of one.
TEST(HostTeamsDeathTest, AThreadThatCannotStartIsAnErrorWithTheNumbers) {
  if (kReservesShadow) GTEST_SKIP() << "a sanitizer takes more addresses than this test leaves: skipped";
  const auto launch = [] {
    const auto device = make_host_teams();
    rlimit limit{};
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = std::size_t{4} << 30U;  // stacks of 8 MiB, of which there would be a thousand
    setrlimit(RLIMIT_AS, &limit);
    DeviceLaunch many;
    many.work.parties = 1000;
    const auto ticket = device->launch(many);
    if (ticket.is_ok()) std::_Exit(1);
    const std::string said(ticket.status().message());
    const bool is_said = ticket.status().code() == Code::resource && said.starts_with("cannot start thread ") &&
                         said.find(" of 1000 of the ranks' teams: ") != std::string::npos;
    // What could be started is there for a launch that needs less.
    DeviceLaunch empty;
    empty.work.parties = 2;
    empty.work.operations = 0;
    std::vector<std::byte> slab(1 << 16);
    std::byte* slabs[] = {slab.data(), slab.data() + (1 << 15)};
    empty.world.ranks = 2;
    empty.world.slabs = slabs;
    const auto small = device->launch(empty);
    while (small.is_ok() && !device->is_complete(small.value()).value()) std::this_thread::yield();
    std::_Exit(is_said && small.is_ok() ? 7 : 2);
  };
  EXPECT_EXIT(launch(), testing::ExitedWithCode(7), "");
}

TEST(HostTeams, LaunchesAreCompleteInTheirOrder) {
  std::vector<std::byte> memory(1 << 16);
  std::byte* slabs[] = {memory.data(), memory.data() + (1 << 15)};
  DeviceLaunch launch;  // two ranks without an operation
  launch.world.ranks = launch.work.parties = 2;
  launch.world.slabs = slabs;
  launch.work.operations = 0;
  const auto device = make_host_teams();
  std::vector<Device::Ticket> tickets;
  for (int i = 0; i < 200; ++i) {
    launch.threads = 1 + i % 3;  // more threads than before, and fewer again
    tickets.push_back(device->launch(launch).value());
    EXPECT_TRUE(i == 0 || tickets[static_cast<std::size_t>(i)] == tickets[static_cast<std::size_t>(i) - 1] + 1);
    if (i % 7 != 0) continue;
    while (!device->is_complete(tickets.back()).value()) std::this_thread::yield();
    for (const Device::Ticket ticket : tickets) EXPECT_TRUE(device->is_complete(ticket).value());
  }
  while (!device->is_complete(tickets.back()).value()) std::this_thread::yield();
}

}  // namespace
}  // namespace tutti
