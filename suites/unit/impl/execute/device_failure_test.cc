// SPDX-License-Identifier: Apache-2.0
// What a team of a thread block tells that waits for too long, or finds that another rank makes another call: where it
// happens some ranks do not take part.
#include <array>
#include <chrono>
#include <vector>

#include <gtest/gtest.h>

#include "suites/unit/impl/execute/host_world.h"

namespace tutti {
namespace {

using std::chrono::seconds;

class DeviceMachineFails : public testing::Test {
 protected:
  /// `call` by these ranks only, `operations` times in one launch.
  void launch(HostWorld& world, const TeamCall& call, std::vector<int> ranks, int operations = 1) {
    std::vector<BoundCall> bound;
    for (const int rank : ranks) bound.push_back(world.bound(rank, call, Dtype::f32, Op::sum).value());
    std::vector<DeviceCall> calls;
    for (int i = 0; i < operations; ++i) {
      for (const BoundCall& one : bound) calls.push_back(call_of(one));
    }
    const auto parties = static_cast<int>(ranks.size());
    world.launch({.calls = calls.data(),
                  .ranks = ranks.data(),
                  .parties = parties,
                  .operations = operations,
                  .limits = {.timeout_ns = 20'000'000}},
                 Dtype::f32, is_reducing(call.algorithm->collective) ? Op::sum : Op::none);
  }
  [[nodiscard]] DeviceCall call_of(const BoundCall& one) {
    return {.full = one.full.view(),
            .tail = one.tail.view(),
            .input = in_.data(),
            .output = out_.data(),
            .segment_bytes = one.segment_bytes,
            .full_segments = one.full_segments,
            .segments = one.segments()};
  }
  static void expect(const DeviceFailure& found, const DeviceFailure& expected) {
    EXPECT_EQ(found.taken, 1U);
    EXPECT_EQ(found.kind, expected.kind);
    EXPECT_EQ(found.rank, expected.rank);
    EXPECT_EQ(found.peer, expected.peer);
    EXPECT_EQ(found.lane, expected.lane);
    EXPECT_EQ(found.operation, expected.operation);
    EXPECT_EQ(found.wanted, expected.wanted);
    EXPECT_EQ(found.found, expected.found);
  }

  std::vector<std::byte> in_ = std::vector<std::byte>(1 << 16);
  std::vector<std::byte> out_ = std::vector<std::byte>(1 << 16);
};

TEST_F(DeviceMachineFails, NamingThePhaseThatIsNotAnnounced) {
  for (const int threads : {1, 2}) {
    HostWorld world({.ranks = 3, .threads = threads});
    const TeamCall sum{.algorithm = algorithm(Collective::all_reduce, "one_shot")};
    launch(world, sum, {0, 2});
    EXPECT_EQ(world.failure().kind, DeviceFailure::phase);
    EXPECT_EQ(world.failure().peer, 1U);
    EXPECT_EQ(world.failure().wanted, 1U);
  }
}

TEST_F(DeviceMachineFails, NamingTheLaneAndTheOperationOfTheLaunch) {
  HostWorld world({.ranks = 2, .lanes = 2});
  const TeamCall offer{.algorithm = algorithm(Collective::broadcast, "direct"), .count = 1};
  launch(world, offer, {0}, 9);  // one segment: lane 0 alone has work
  expect(world.failure(), {.kind = DeviceFailure::generation, .rank = 0, .peer = 1, .operation = 4, .wanted = 1});
  HostWorld cut({.ranks = 2, .lanes = 2, .scratch_bytes = 128});
  const TeamCall three{.algorithm = algorithm(Collective::broadcast, "direct"), .count = 96};
  ASSERT_EQ(cut.bound(1, three, Dtype::f32, Op::sum).value().segments(), 3);
  cut.world().line(0, 0, 0, 1).flag = std::uint64_t{9} << 16U;  // lane 0 hears, lane 1 does not
  cut.world().line(0, 0, 0, 1).hash = cut.bound(1, three, Dtype::f32, Op::sum).value().full.header().hash;
  cut.world().line(0, 0, 0, 2) = cut.world().line(0, 0, 0, 1);
  launch(cut, three, {1});
  expect(cut.failure(), {.kind = DeviceFailure::phase, .rank = 1, .peer = 0, .lane = 1, .wanted = 1});
}

TEST_F(DeviceMachineFails, NamingTheBytesThatDoNotCome) {
  HostWorld world({.ranks = 2});
  launch(world, {.algorithm = algorithm(Collective::broadcast, "chain"), .count = 100}, {1});
  expect(world.failure(), {.kind = DeviceFailure::data, .rank = 1, .peer = 0, .wanted = 400});
}

TEST_F(DeviceMachineFails, NamingTheBytesForWhichThereIsNoRoom) {
  HostWorld world({.ranks = 2, .slots = 2});
  launch(world, {.algorithm = algorithm(Collective::broadcast, "chain"), .count = 200}, {0});
  expect(world.failure(), {.kind = DeviceFailure::room, .rank = 0, .peer = 1, .wanted = 800 - 2 * 256});
}

TEST_F(DeviceMachineFails, WhereTheOtherRankMakesAnotherCall) {
  HostWorld world({.ranks = 2});
  const TeamCall one{.algorithm = algorithm(Collective::all_reduce, "one_shot"), .count = 1};
  TeamCall two = one;
  two.count = 2;
  const std::vector<BoundCall> bound{world.bound(0, one, Dtype::f32, Op::sum).value(),
                                     world.bound(1, two, Dtype::f32, Op::sum).value()};
  const std::vector<DeviceCall> calls{call_of(bound[0]), call_of(bound[1])};
  world.launch({.calls = calls.data(), .parties = 2}, Dtype::f32, Op::sum);
  EXPECT_EQ(world.failure().kind, DeviceFailure::other_call);
  EXPECT_EQ(world.failure().rank + world.failure().peer, 1U);
}

TEST_F(DeviceMachineFails, WhereTheOtherRankSendsAnotherLength) {
  HostWorld world({.ranks = 2});
  const Problem problem{.collective = Collective::all_to_all, .ranks = 2};
  const Schedule schedule = schedule_of(*algorithm(Collective::all_to_all, "pairwise"), problem);
  std::vector<BoundCall> bound;
  std::vector<DeviceCall> calls;
  for (int rank = 0; rank < 2; ++rank) {
    // Rank 0 sends 3 elements where rank 1 expects 2.
    const std::array<Count, 2> send{1, rank == 0 ? 3 : 1}, receive{rank == 0 ? 1 : 2, 1};
    const BlockTable blocks = blocks_of(problem, {.counts = send}, {.counts = receive}, sizeof(float)).value();
    bound.push_back(
        bind(schedule,
             {.rank = rank, .resources = {.slots = 4, .slot_bytes = 256, .scratch_bytes = 4096}, .blocks = &blocks})
            .value());
  }
  for (const BoundCall& one : bound) calls.push_back(call_of(one));
  world.launch({.calls = calls.data(), .parties = 2}, Dtype::f32, Op::none);
  expect(world.failure(), {.kind = DeviceFailure::other_length, .rank = 1, .peer = 0, .wanted = 8, .found = 12});
}

TEST_F(DeviceMachineFails, AtOnceWhereTheHostSaysSo) {
  HostWorld world({.ranks = 2});
  *world.world().abort_word = 1;
  const auto begin = std::chrono::steady_clock::now();
  const BoundCall bound =
      world.bound(1, {.algorithm = algorithm(Collective::broadcast, "chain"), .count = 100}, Dtype::f32, Op::none)
          .value();
  const DeviceCall call = call_of(bound);
  const int rank = 1;
  world.launch({.calls = &call, .ranks = &rank, .parties = 1}, Dtype::f32, Op::none);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(30)) << "not at the deadline of a minute";
  EXPECT_EQ(world.failure().kind, DeviceFailure::none) << "nobody has failed";
}

}  // namespace
}  // namespace tutti
