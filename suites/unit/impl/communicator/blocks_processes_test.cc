// SPDX-License-Identifier: Apache-2.0
// Ranks that have a device each and are processes: how they open what the others have there, what they are told when
// that does not work, and that nothing goes away that another may still write to. Here they are threads of one process,
// whose devices know nothing of each other but what is offered. Group and InFlight are run on real processes too.
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "impl/communicator/blocks.h"
#include "impl/communicator/plan_cache.h"
#include "impl/device/teams.h"
#include "impl/transports/local/domain.h"

namespace tutti {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::StartsWith;

/// Teams whose memory is offered and opened as others' is, with what is done to it counted.
class OfferedTeams final : public Device {
 public:
  [[nodiscard]] std::string name() const override { return teams_->name(); }
  Result<std::byte*> allocate(std::size_t bytes) override { return teams_->allocate(bytes); }
  Result<std::byte*> allocate_mapped(std::size_t bytes) override { return teams_->allocate_mapped(bytes); }
  Result<std::byte*> allocate_for_processes(std::size_t bytes) override {
    if (has_no_memory) return error(Code::resource, "cannot allocate {} bytes", bytes);
    ++offered;
    return offered_at_ = teams_->allocate_for_processes(bytes);
  }
  void release(std::byte* memory) override {
    if (offered_at_.is_ok() && memory == offered_at_.value()) ++released;
    teams_->release(memory);
  }
  [[nodiscard]] std::string place() const override { return at.empty() ? teams_->place() : at; }
  Result<DeviceOffer> offer(std::byte* memory) override { return teams_->offer(memory); }
  Result<std::byte*> open_offered(const DeviceOffer& offer, const std::string& place) override {
    if (cannot_open) return error(Code::unavailable, "cannot open memory at {}", place);
    ++open;
    return teams_->open_offered(offer, place);
  }
  void close_offered(std::byte* memory) override {
    --open;
    teams_->close_offered(memory);
  }
  Status write(std::byte* to, const void* from, std::size_t bytes) override { return teams_->write(to, from, bytes); }
  [[nodiscard]] int usual_threads() const override { return teams_->usual_threads(); }
  [[nodiscard]] bool needs_cores() const override { return teams_->needs_cores(); }
  Status fits(int teams, int threads) override { return teams_->fits(teams, threads); }
  Result<Ticket> launch(DeviceLaunch launch) override {
    packet_bytes = launch.world.packet_bytes;
    return teams_->launch(std::move(launch));
  }
  Result<std::unique_ptr<DeviceGraph>> record(std::vector<DeviceLaunch> launches) override {
    return teams_->record(std::move(launches));
  }
  Result<Ticket> replay(DeviceGraph& graph) override { return teams_->replay(graph); }
  Result<bool> is_complete(Ticket ticket) override { return teams_->is_complete(ticket); }

  std::string at;
  bool has_no_memory = false;
  bool cannot_open = false;
  std::atomic<int> offered = 0, released = 0, open = 0;
  std::uint64_t packet_bytes = 1;  ///< of the world that was launched last

 private:
  std::unique_ptr<Device> teams_ = make_host_teams();
  Result<std::byte*> offered_at_ = static_cast<std::byte*>(nullptr);
};

class OwnDevices : public testing::Test {
 protected:
  using Body = std::function<void(Communicator& mine)>;

  explicit OwnDevices() : devices_(3) {}

  /// Each rank by a thread of its own. What `create` says, by rank.
  std::vector<Status> on_each(const Body& body, const CommunicatorOptions& options = {.timeout = seconds(30)},
                              const Hooks& hooks = {}) {
    const auto ranks = static_cast<int>(devices_.size());
    domain_ = local::open_domain(local::shape_for(ranks)).value();
    std::vector<Status> made(devices_.size());
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        auto& device = devices_[static_cast<std::size_t>(rank)];
        auto mine = create_on_own_device(*domain_, rank, device, {.lanes = 2}, options, hooks);
        made[static_cast<std::size_t>(rank)] = mine.status();
        if (mine.is_ok()) body(*mine.value());
      });
    }
    for (std::thread& thread : threads) thread.join();
    return made;
  }

  std::deque<OfferedTeams> devices_;
  std::unique_ptr<Domain> domain_;
};

TEST_F(OwnDevices, HaveTheirCollectivesInCommon) {
  const auto made = on_each([](Communicator& mine) {
    for (std::int32_t i = 0; i < 50; ++i) {
      const std::vector<std::int32_t> in(1000, mine.rank() + i);
      std::vector<std::int32_t> out(3000);
      ASSERT_TRUE(mine.all_reduce(in.data(), out.data(), 1000, Dtype::i32, Op::sum).is_ok());
      ASSERT_THAT(std::vector(out.begin(), out.begin() + 1000), Each(3 + 3 * i));
      ASSERT_TRUE(mine.all_gather(in.data(), out.data(), 1000, Dtype::i32).is_ok());
      ASSERT_EQ(out[2999], 2 + i);
    }
    ASSERT_TRUE(mine.barrier().is_ok());
  });
  for (const Status& status : made) EXPECT_TRUE(status.is_ok()) << status.message();
}

TEST_F(OwnDevices, AreReleasedOnceNobodyHasThemOpen) {
  std::atomic<bool> has_left = false;
  on_each([&](Communicator& mine) {
    ASSERT_TRUE(mine.barrier().is_ok());
    if (mine.rank() != 2) return;
    std::this_thread::sleep_for(milliseconds(100));
    EXPECT_EQ(devices_[0].released + devices_[1].released, 0) << "rank 2 may still write there";
    has_left = true;
  });
  EXPECT_TRUE(has_left);
  for (OfferedTeams& device : devices_) {
    EXPECT_EQ(device.offered, 1);
    EXPECT_EQ(device.released, 1);
    EXPECT_EQ(device.open, 0);
  }
}

TEST_F(OwnDevices, OfOnePlaceAreRefusedOnAllRanksNamingThem) {
  devices_[0].at = "0000:01:00.0";
  devices_[1].at = "0000:02:00.0";
  devices_[2].at = "0000:01:00.0";
  const auto made = on_each([](Communicator&) { FAIL(); });
  for (const Status& status : made) {
    EXPECT_EQ(status.code(), Code::unavailable);
    EXPECT_THAT(status.message(),
                HasSubstr("rank 0 and rank 2 are processes on one GPU, 0000:01:00.0 (teams of threads "
                          "of the host), where they take turns"));
    EXPECT_THAT(status.message(), HasSubstr("--ranks-as blocks runs several ranks on one GPU"));
  }
}

TEST_F(OwnDevices, WhatOneRankLacksIsToldToAll) {
  devices_[1].has_no_memory = true;
  auto made = on_each([](Communicator&) { FAIL(); });
  for (const Status& status : made) {
    EXPECT_EQ(status.code(), Code::resource);
    EXPECT_THAT(status.message(), testing::MatchesRegex("(rank 1: )?cannot allocate [0-9]+ bytes"));
  }
  EXPECT_THAT(made[0].message(), StartsWith("rank 1: "));
  devices_[1].has_no_memory = false;
  devices_[2].cannot_open = true;
  made = on_each([](Communicator&) { FAIL(); });
  for (const Status& status : made) {
    EXPECT_EQ(status.code(), Code::unavailable);
    EXPECT_THAT(status.message(), HasSubstr("cannot open memory at process "));
  }
  for (OfferedTeams& device : devices_) EXPECT_EQ(device.open, 0);
}

TEST_F(OwnDevices, OfARankThatNeverComesAreWaitedForUntilTheDeadline) {
  const auto domain = local::open_domain(local::shape_for(2)).value();
  const Status status = create_on_own_device(*domain, 0, devices_[0], {}, {.timeout = milliseconds(50)}).status();
  EXPECT_EQ(status.code(), Code::timeout);
  EXPECT_EQ(status.message(), "rank 0 gave up: waits for rank 1 to say what it has on its device");
  EXPECT_EQ(create_on_own_device(*domain, 1, devices_[1], {}, {.timeout = seconds(30)}).status().message(),
            "rank 0 failed: timeout: " + status.message());
}

TEST_F(OwnDevices, ARankThatDoesNotCallIsNamedAndEndsAllRanks) {
  std::atomic<int> others = 0;
  on_each([&](Communicator& mine) {
    ASSERT_TRUE(mine.barrier().is_ok());
    float value = 1, sum = 0;
    if (mine.rank() != 1) {
      const Call call{.collective = Collective::all_reduce, .op = Op::sum, .count = 1, .input = &value, .output = &sum};
      Work work = mine.post(call).value();
      const Status status = work.wait(milliseconds(mine.rank() == 0 ? 100 : 30'000));
      if (mine.rank() == 2) {
        EXPECT_THAT(status.message(), StartsWith("rank 0 failed: timeout: rank 0 gave up: operation 2 (all_reduce "));
        return;
      }
      EXPECT_EQ(status.code(), Code::timeout);
      EXPECT_THAT(status.message(), AllOf(StartsWith("rank 0 gave up: operation 2 (all_reduce "),
                                          HasSubstr("rank 1 has not called operation 2: its last is operation 1")));
      others = 1;
      return;
    }
    while (others == 0) std::this_thread::yield();
    EXPECT_THAT(mine.barrier().message(), StartsWith("rank 0 failed: timeout: ")) << "before it is launched";
  });
}

TEST_F(OwnDevices, OtherCallsAreAMismatchNamingTheField) {
  std::atomic<int> named = 0;
  on_each([&](Communicator& mine) {
    std::vector<float> in(20), out(20);
    const Count count = mine.rank() == 1 ? 8 : 4;
    const Status status = mine.all_reduce(in.data(), out.data(), count, Dtype::f32, Op::sum);
    EXPECT_FALSE(status.is_ok());
    if (status.code() != Code::mismatch) return;
    ++named;
    EXPECT_THAT(status.message(), AllOf(HasSubstr("do not agree on operation 1: count"), HasSubstr("rank 1")));
  });
  EXPECT_GE(named, 1);
}

TEST_F(OwnDevices, HaveNoSharedBuffersAndNoMessages) {
  on_each([](Communicator& mine) {
    void* const memory = mine.alloc_shared(4).value();
    EXPECT_THAT(mine.all_reduce(memory, memory, 1, Dtype::f32, Op::sum, Buffers::shared).message(),
                StartsWith("shared buffers of ranks on devices of several processes"));
    EXPECT_THAT(mine.send(memory, 1, Dtype::f32, 0).message(), StartsWith("sends and receives of single ranks"));
    EXPECT_TRUE(mine.barrier().is_ok());
    mine.free_shared(memory);
  });
}

/// Nobody knows the others' calls before they are launched.
TEST_F(OwnDevices, AreNotCapturedAndTellNothingByPackets) {
  on_each([](Communicator& mine) {
    EXPECT_FALSE(mine.has_graphs());
    for (const Status& refused : {mine.begin_capture(), mine.end_capture().status()}) {
      EXPECT_EQ(refused.code(), Code::unavailable);
      EXPECT_THAT(refused.message(), StartsWith("calls of ranks on the GPUs of several processes are not captured"));
    }
    const float in = 1;
    float out = 0;
    ASSERT_TRUE(mine.all_reduce(&in, &out, 1, Dtype::f32, Op::sum).is_ok());
    EXPECT_EQ(out, 3);
  });
  for (const OfferedTeams& device : devices_) EXPECT_EQ(device.packet_bytes, 0U);
}

}  // namespace
}  // namespace tutti
