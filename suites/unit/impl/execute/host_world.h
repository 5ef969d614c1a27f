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

namespace tutti {

struct TeamsShape {
  int ranks = 2;
  int lanes = 1;
  int threads = 1;
  int generations = 4;
  int slots = 4;
  std::int64_t slot_bytes = 256;
  std::int64_t scratch_bytes = 4096;
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
  explicit HostWorld(const TeamsShape& shape) : shape_(shape), device_(make_host_teams()) {
    world_ = {.ranks = shape.ranks,
              .lanes = shape.lanes,
              .generations = shape.generations,
              .slots = shape.slots,
              .scratch_bytes = static_cast<std::uint64_t>(shape.scratch_bytes),
              .slot_bytes = static_cast<std::uint64_t>(shape.slot_bytes)};
    const std::size_t slab = world_.slab_bytes();
    memory_ = DeviceMemory::make(*device_, slab * static_cast<std::size_t>(shape.ranks)).value();
    for (int rank = 0; rank < shape.ranks; ++rank)
      slabs_.push_back(memory_.get() + static_cast<std::size_t>(rank) * slab);
    world_.slabs = slabs_.data();
    world_.abort_word = &abort_word_;
    world_.failure = &failure_;
    for (int rank = 0; rank < shape.ranks; ++rank) {
      for (int lane = 0; lane < shape.lanes; ++lane) {
        world_.state(rank, lane).free_until = static_cast<std::uint64_t>(shape.generations);
      }
    }
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

  /// Launches, and waits until it is complete.
  void launch(DeviceWork work, Dtype dtype, Op op) {
    DeviceLaunch launch{.world = world_, .work = work, .dtype = dtype, .op = op, .threads = shape_.threads};
    const Result<Device::Ticket> ticket = device_->launch(std::move(launch));
    ASSERT_TRUE(ticket.is_ok()) << ticket.status().message();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!device_->is_complete(ticket.value()).value()) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "the launch does not end";
      std::this_thread::yield();
    }
  }

 private:
  TeamsShape shape_;
  std::unique_ptr<Device> device_;
  DeviceWorld world_;
  DeviceMemory memory_;
  std::vector<std::byte*> slabs_;
  std::uint64_t abort_word_ = 0;
  DeviceFailure failure_{};
};

}  // namespace tutti
