// SPDX-License-Identifier: Apache-2.0
// The memory of ranks that are thread blocks, on teams of threads of the host, for tests that launch plans there.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "impl/algorithms/algorithm.h"
#include "impl/device/teams.h"
#include "impl/schedule/bind.h"
#include "suites/unit/impl/execute/device_memory.h"
#include "suites/unit/impl/execute/watched_target.h"

namespace tutti {

struct TeamsShape {
  int ranks = 2;
  int lanes = 1;
  int threads = 1;
  int generations = 4;
  int slots = 4;
  std::int64_t slot_bytes = 256;
  std::int64_t scratch_bytes = 4096;
  std::int64_t packet_bytes = 0;
  int devices = 1;
};

/// One operation of all ranks.
struct TeamCall {
  const Algorithm* algorithm = nullptr;
  Count count = 1;
  Buffers buffers = Buffers::private_;
  int root = 0;
};

inline const Algorithm* algorithm(Collective collective, std::string_view name) {
  return find_algorithm(collective, name).value();
}

/// Zeroed memory of `shape`, and launches on it.
class HostWorld {
 public:
  explicit HostWorld(const TeamsShape& shape) : shape_(shape), lists_(shape.ranks, shape.devices) {
    for (int device = 0; device < shape.devices; ++device) devices_.push_back(make_host_teams());
    world_ = {.ranks = shape.ranks,
              .lanes = shape.lanes,
              .generations = shape.generations,
              .slots = shape.slots,
              .scratch_bytes = static_cast<std::uint64_t>(shape.scratch_bytes),
              .slot_bytes = static_cast<std::uint64_t>(shape.slot_bytes),
              .packet_bytes = static_cast<std::uint64_t>(shape.packet_bytes)};
    memory_ = DeviceMemory::make(*devices_.front(), lists_.bytes(world_)).value();
    lists_.place(world_, memory_.get());
    world_.abort_word = &abort_word_;
    world_.failure = &failure_;
  }

  [[nodiscard]] const DeviceFailure& failure() const { return failure_; }
  [[nodiscard]] DeviceWorld& world() { return world_; }
  [[nodiscard]] const TeamsShape& shape() const { return shape_; }

  [[nodiscard]] Result<BoundCall> bound(int rank, const TeamCall& call, Dtype dtype, Op op) const {
    const Problem problem{.collective = call.algorithm->collective, .ranks = shape_.ranks, .root = call.root};
    return bind(
        schedule_of(*call.algorithm, problem),
        {.rank = rank,
         .count = call.count,
         .dtype = dtype,
         .op = is_reducing(problem.collective) ? op : Op::none,
         .buffers = call.buffers,
         .resources = {.slots = shape_.slots, .slot_bytes = shape_.slot_bytes, .scratch_bytes = shape_.scratch_bytes},
         .lanes = shape_.lanes});
  }

  /// Launches all devices, and waits until they are complete. On several devices a party is a rank.
  void launch(DeviceWork work, Dtype dtype, Op op) {
    std::vector<std::pair<HostTeams*, Device::Ticket>> tickets;
    std::vector<std::vector<int>> ranks(devices_.size());
    std::vector<std::vector<DeviceCall>> calls(devices_.size());
    for (std::size_t device = 0; device < devices_.size(); ++device) {
      DeviceLaunch launch{.world = world_, .work = work, .dtype = dtype, .op = op, .threads = shape_.threads};
      launch.world.here = static_cast<int>(device);
      if (devices_.size() > 1) deal(launch, ranks[device], calls[device]);
      if (launch.work.parties == 0) continue;
      const Result<Device::Ticket> ticket = start(*devices_[device], std::move(launch));
      ASSERT_TRUE(ticket.is_ok()) << ticket.status().message();
      tickets.emplace_back(devices_[device].get(), ticket.value());
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    for (const auto& [device, ticket] : tickets) {
      while (!device->is_complete(ticket).value()) {
        ASSERT_LT(std::chrono::steady_clock::now(), end) << "the launch does not end";
        std::this_thread::yield();
      }
    }
  }

  /// From here on launches note which words teams look at and store.
  void watch() { watch_ = std::make_unique<Watch>(lists_); }
  [[nodiscard]] Watch& watched() { return *watch_; }

 private:
  /// The parties of a device, of all ranks that `launch` has.
  void deal(DeviceLaunch& launch, std::vector<int>& ranks, std::vector<DeviceCall>& calls) const {
    DeviceWork& work = launch.work;
    std::vector<int> parties;
    for (int party = 0; party < work.parties; ++party) {
      const int rank = work.ranks == nullptr ? party : work.ranks[party];
      if (lists_.device_of(rank) != launch.world.here) continue;
      parties.push_back(party);
      ranks.push_back(rank);
    }
    for (int operation = 0; operation < work.operations; ++operation) {
      for (const int party : parties) calls.push_back(work.calls[operation * work.parties + party]);
    }
    work.calls = calls.data();
    work.ranks = ranks.data();
    work.parties = static_cast<int>(ranks.size());
  }
  Result<Device::Ticket> start(HostTeams& device, DeviceLaunch launch) {
    if (watch_ == nullptr) return device.launch(std::move(launch));
    const TeamsOfThreads teams{.teams = launch.teams(), .threads = launch.threads};
    return device.run(teams, [this, launch](HostTarget& target, int team) { watch_->run(launch, target, team); });
  }

  TeamsShape shape_;
  MemoryOfDevices lists_;
  std::vector<std::unique_ptr<HostTeams>> devices_;
  DeviceWorld world_;
  DeviceMemory memory_;
  std::uint64_t abort_word_ = 0;
  DeviceFailure failure_{};
  std::unique_ptr<Watch> watch_;
};

}  // namespace tutti
