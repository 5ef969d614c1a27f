// SPDX-License-Identifier: Apache-2.0
// Ranks that are thread blocks on teams of the host, for tests of their communicators.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "impl/algorithms/algorithm.h"
#include "impl/communicator/blocks.h"
#include "impl/communicator/plan_cache.h"
#include "impl/device/teams.h"
#include "impl/transports/local/domain.h"

namespace tutti {

/// The host's teams, with some allocations refused and all launches counted.
class WatchedTeams final : public Device {
 public:
  [[nodiscard]] std::string name() const override { return teams_->name(); }
  Result<std::byte*> allocate(std::size_t bytes) override {
    if (left == 0) return error(Code::resource, "cannot allocate {} bytes", bytes);
    if (left > 0) --left;
    ++live;
    return teams_->allocate(bytes);
  }
  Result<std::byte*> allocate_mapped(std::size_t bytes) override { return allocate(bytes); }
  void release(std::byte* memory) override {
    --live;
    teams_->release(memory);
  }
  Status write(std::byte* to, const void* from, std::size_t bytes) override { return teams_->write(to, from, bytes); }
  [[nodiscard]] int usual_threads() const override { return teams_->usual_threads(); }
  [[nodiscard]] bool needs_cores() const override { return teams_->needs_cores(); }
  Status fits(int teams, int threads) override { return teams_->fits(teams, threads); }
  Result<Ticket> launch(DeviceLaunch launch) override {
    if (refuses) return error(Code::io, "the device has failed");
    if (loses) launch.work.operations = 0;
    if (before_launch) before_launch();
    const Result<Ticket> ticket = teams_->launch(std::move(launch));
    if (ticket.is_ok()) newest = ticket.value();
    return ticket;
  }
  Result<std::unique_ptr<DeviceGraph>> record(std::vector<DeviceLaunch> launches) override {
    if (refuses) return error(Code::io, "the device has failed");
    recorded += launches.size();
    return teams_->record(std::move(launches));
  }
  Result<Ticket> replay(DeviceGraph& graph) override {
    if (refuses) return error(Code::io, "the device has failed");
    if (before_launch) before_launch();
    const Result<Ticket> ticket = teams_->replay(graph);
    if (ticket.is_ok()) newest = ticket.value();
    return ticket;
  }
  Result<bool> is_complete(Ticket ticket) override {
    if (breaks) return error(Code::io, "the device has failed");
    return teams_->is_complete(ticket);
  }

  /// Whether nothing is under way.
  [[nodiscard]] bool is_idle() { return newest == 0 || teams_->is_complete(newest).value(); }

  std::atomic<int> left = -1;  ///< allocations; below 0: as many as one likes
  std::atomic<int> live = 0;   ///< that are not released
  std::atomic<Ticket> newest = 0;
  std::atomic<std::size_t> recorded = 0;  ///< launches
  std::atomic<bool> refuses = false;      ///< to launch
  std::atomic<bool> loses = false;        ///< what its ranks have to do
  std::atomic<bool> breaks = false;       ///< from here on
  std::function<void()> before_launch = {};

 private:
  std::unique_ptr<Device> teams_ = make_host_teams();
};

/// A plan whose rank announces nothing.
inline Plan without_signals(const Plan& plan) {
  PlanHeader header = plan.header();
  std::vector<PlanOp> ops(plan.ops().begin(), plan.ops().end());
  std::erase_if(ops, [](const PlanOp& op) { return op.verb == Verb::signal; });
  header.ops = static_cast<std::uint32_t>(ops.size());
  header.is_exchange = false;
  return {header, ops, plan.operands(), plan.exposures()};
}

/// Rank 1 announces nothing in its sums: in all, or in their last segment.
inline AfterBind silent(bool is_in_tail_only) {
  return [is_in_tail_only](int rank, const Call& call, BoundEntry& entry) {
    if (rank != 1 || call.collective != Collective::all_reduce) return;
    if (entry.call.has_tail) entry.call.tail = without_signals(entry.call.tail);
    if (!is_in_tail_only && entry.call.full_segments > 0) entry.call.full = without_signals(entry.call.full);
  };
}

struct Opened {
  TeamShape teams = {};
  std::chrono::nanoseconds timeout = std::chrono::seconds(30);
  Hooks hooks = {};
  int devices = 1;
};

class Blocks : public testing::Test {
 protected:
  void open(int ranks, const Opened& how = {}) {
    communicators_.clear();
    domain_ = local::open_domain(local::shape_for(ranks)).value();
    while (static_cast<int>(others_.size()) < how.devices - 1) others_.emplace_back();
    auto made = create_as_blocks(*domain_, devices(how.devices), how.teams, {.timeout = how.timeout}, how.hooks);
    ASSERT_TRUE(made.is_ok()) << made.status().message();
    communicators_ = std::move(made).value();
  }
  [[nodiscard]] Communicator& on(int rank) { return *communicators_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] int ranks() const { return static_cast<int>(communicators_.size()); }

  /// Every rank by a thread of its own.
  template <class Body>
  void on_each(Body body) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks(); ++rank) threads.emplace_back([&, rank] { body(on(rank)); });
    for (std::thread& thread : threads) thread.join();
  }

  [[nodiscard]] const Schedule* schedule(Collective collective, const char* name, int root = 0) {
    const Problem problem{.collective = collective, .ranks = ranks(), .root = root};
    return &schedules_.emplace_back(schedule_of(*find_algorithm(collective, name).value(), problem));
  }
  /// A sum of floats of the fixture's own buffers, which stay where they are: captured calls keep their addresses.
  [[nodiscard]] Call sum(int rank, Count count = 4) {
    constexpr std::size_t kReserved = std::size_t{1} << 16U;
    const auto elements = static_cast<std::size_t>(2 * count);
    auto& mine = buffers_[static_cast<std::size_t>(rank)];
    EXPECT_TRUE(mine.empty() || elements <= mine.capacity()) << "the buffer would move";
    mine.reserve(kReserved);
    mine.resize(std::max(mine.size(), elements), static_cast<float>(rank + 1));
    return {.collective = Collective::all_reduce,
            .op = Op::sum,
            .count = count,
            .input = mine.data(),
            .output = mine.data() + count};
  }
  [[nodiscard]] Result<bool> tested_until_over(Work work) {
    const auto end = Clock::now() + std::chrono::seconds(60);
    for (;;) {
      Result<bool> tested = work.test();
      if (!tested.is_ok() || tested.value() || Clock::now() > end) return tested;
    }
  }

  [[nodiscard]] std::vector<Device*> devices(int count) {
    std::vector<Device*> all{&device_};
    for (int i = 1; i < count; ++i) all.push_back(&others_[static_cast<std::size_t>(i) - 1]);
    return all;
  }

  WatchedTeams device_;
  std::deque<WatchedTeams> others_;  ///< devices 1 and more
  std::unique_ptr<Domain> domain_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
  std::deque<Schedule> schedules_;
  std::array<std::vector<float>, 8> buffers_;
};

}  // namespace tutti
