// SPDX-License-Identifier: Apache-2.0
// Messages by packets: which plans go so, what comes of them on teams of the host, and that no old packet is taken for
// a new one however many operations there were.
#include "impl/execute/packets.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "suites/unit/impl/execute/host_world.h"

namespace tutti {
namespace {

constexpr std::int64_t kPackets = 128;  // bytes
constexpr std::uint64_t kHalf = std::uint64_t{1} << 31U;

TEST(Packets, AreOfOneOperationOfTheLowHalfOfItsNumber) {
  const std::uint64_t packet = packet_of(0x500000007, 0xdeadbeef);
  EXPECT_EQ(packet, 0x00000007deadbeefU);
  EXPECT_TRUE(is_packet_of(7, packet));
  EXPECT_TRUE(is_packet_of(0x300000007, packet)) << "2^32 operations apart: what renews_packets is for";
  EXPECT_FALSE(is_packet_of(8, packet));
  EXPECT_FALSE(is_packet_of(0x700000000, packet));
}

/// Of K operations one after the other each has a generation of its own, and each renews once in 2^31.
TEST(Packets, AreRenewedInEveryGenerationOnceInHalfTheNumbers) {
  for (const std::uint64_t generations : {2U, 4U}) {
    for (const std::uint64_t turn : {1U, 2U, 3U, 7U}) {
      std::set<std::uint64_t> renewed;
      for (std::uint64_t number = turn * kHalf - 10; number < turn * kHalf + 10; ++number) {
        if (renews_packets(number, generations)) renewed.insert(number % generations);
        EXPECT_EQ(renews_packets(number, generations), number >= turn * kHalf && number < turn * kHalf + generations);
      }
      EXPECT_EQ(renewed.size(), generations);
    }
    for (std::uint64_t number = 1; number < 10; ++number) EXPECT_FALSE(renews_packets(number, generations));
  }
}

/// The algorithms of which some plan on `ranks` ranks has a form, by collective.
std::map<Collective, std::set<std::string>> with_form(int ranks) {
  std::map<Collective, std::set<std::string>> found;
  const HostWorld world({.ranks = ranks});
  for (const Algorithm* const one : all_algorithms()) {
    bool has_form = true;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto bound = world.bound(rank, {.algorithm = one, .count = 5}, Dtype::f32, Op::sum);
      has_form = has_form && bound.is_ok() && packet_form(bound.value().plan(0), kPackets).has_value();
    }
    if (has_form) found[one->collective].insert(std::string(one->name));
  }
  return found;
}

TEST(PacketForm, IsThatOfEverybodyTellingEverybodyTheSame) {
  const std::map<Collective, std::set<std::string>> expected{{Collective::all_reduce, {"one_shot"}},
                                                             {Collective::sendrecv, {"direct"}}};
  EXPECT_EQ(with_form(3), expected);
  for (const int ranks : {2, 8}) {
    auto found = with_form(ranks);
    EXPECT_EQ(found.erase(Collective::bibandwidth), 1U) << "pairs of ranks tell each other the same";
    EXPECT_EQ(found, expected) << ranks;
  }
  EXPECT_TRUE(with_form(1).empty());
}

TEST(PacketForm, IsThatOfMessagesUpToALength) {
  const HostWorld world({.ranks = 2});
  const TeamCall call{.algorithm = algorithm(Collective::all_reduce, "one_shot"), .count = 5};
  const Plan plan = world.bound(0, call, Dtype::f32, Op::sum).value().plan(0);
  EXPECT_EQ(packet_form(plan, 20), (PacketForm{.bytes = 20, .offset = 0, .space = Space::line}));
  EXPECT_EQ(packet_form(plan, 19), std::nullopt);
  const Plan scaled = world.bound(0, call, Dtype::f32, Op::premul_sum).value().plan(0);
  EXPECT_EQ(packet_form(scaled, 20), std::nullopt) << "what is told is no copy";
}

class PacketsOnTeams : public testing::Test {
 protected:
  using Elements = std::vector<std::int32_t>;

  struct Operation {
    Count count;
    bool by_packets = true;
  };

  /// All operations in one launch of the first `parties` ranks; checked where that is all of them.
  void run(HostWorld& world, const std::vector<Operation>& operations, int parties = 0) {
    const int ranks = world.shape().ranks;
    if (parties == 0) parties = ranks;
    std::deque<BoundCall> bound;
    std::deque<Elements> in, out;  // [operation][party]
    std::vector<DeviceCall> calls;
    for (std::size_t number = 0; number < operations.size(); ++number) {
      const auto& [count, by_packets] = operations[number];
      for (int rank = 0; rank < parties; ++rank) {
        const BoundCall& one =
            bound.emplace_back(world.bound(rank, {.algorithm = sum_, .count = count}, Dtype::i32, Op::sum).value());
        in.emplace_back();
        for (Count i = 0; i < count; ++i) in.back().push_back(value(rank, number, i));
        out.emplace_back(static_cast<std::size_t>(count), -1);
        ASSERT_TRUE(!by_packets || packet_form(one.plan(0), kPackets)) << count;
        calls.push_back({.full = one.full.view(),
                         .tail = one.tail.view(),
                         .input = reinterpret_cast<const std::byte*>(in.back().data()),
                         .output = reinterpret_cast<std::byte*>(out.back().data()),
                         .segment_bytes = one.segment_bytes,
                         .full_segments = one.full_segments,
                         .segments = one.segments(),
                         .by_packets = by_packets});
      }
    }
    world.launch({.calls = calls.data(),
                  .parties = parties,
                  .operations = static_cast<int>(operations.size()),
                  .limits = {.timeout_ns = parties == ranks ? 60'000'000'000U : 50'000'000U}},
                 Dtype::i32, Op::sum);
    if (parties != ranks) return;
    ASSERT_EQ(world.failure().kind, DeviceFailure::none);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::size_t number = i / static_cast<std::size_t>(ranks);
      for (Count at = 0; at < operations[number].count; ++at) {
        std::int32_t expected = 0;
        for (int from = 0; from < ranks; ++from) expected += value(from, number, at);
        ASSERT_EQ(out[i][static_cast<std::size_t>(at)], expected) << "operation " << number << ", element " << at;
      }
    }
  }
  static std::int32_t value(int rank, std::size_t operation, Count element) {
    return static_cast<std::int32_t>(element + 1000 * static_cast<Count>(operation)) * 16 + (1 << rank);
  }
  /// As if so many operations were over. What is told of them is told.
  static void set_number(HostWorld& world, std::uint64_t number) {
    DeviceWorld& all = world.world();
    for (int rank = 0; rank < all.ranks; ++rank) {
      for (int lane = 0; lane < all.lanes; ++lane) {
        all.state(rank, lane).number = number;
        all.state(rank, lane).free_until = number;
        for (int device = 0; device < all.devices; ++device) *all.completion(device, rank, lane) = number;
      }
    }
  }

  const Algorithm* sum_ = algorithm(Collective::all_reduce, "one_shot");
};

TEST_F(PacketsOnTeams, LongAndShortOnesFollowEachOther) {
  for (const TeamsShape& shape : {TeamsShape{.ranks = 2},
                                  {.ranks = 3, .threads = 2},
                                  {.ranks = 4, .generations = 2},
                                  {.ranks = 3, .lanes = 2},
                                  {.ranks = 4, .devices = 2},
                                  {.ranks = 3, .threads = 2, .devices = 3}}) {
    TeamsShape with = shape;
    with.packet_bytes = kPackets;
    HostWorld world(with);
    std::vector<Operation> operations;
    for (const Count count : {1, 32, 7, 32, 1, 2, 31, 12, 13, 32, 3}) {
      operations.push_back({count});
      operations.push_back({count, false});
      operations.push_back({count});
    }
    run(world, operations);
  }
}

/// Between two operations on the scratch of a generation there are packets alone, which order nothing: the thread
/// sanitizer sees it where that generation is taken to be free on their word.
TEST_F(PacketsOnTeams, ScratchIsNotWrittenAgainOnTheWordOfPackets) {
  for (const int threads : {1, 2}) {
    for (const Count count : {4, 32}) {  // in the line, and beside it
      HostWorld world({.ranks = 3, .threads = threads, .packet_bytes = kPackets});
      std::vector<Operation> operations;
      for (int i = 0; i < 40; ++i) operations.push_back({count, i % 4 != 0});
      run(world, operations);
    }
  }
}

TEST_F(PacketsOnTeams, OfBytesThatAreNoWholePacketsAndLieAnywhere) {
  HostWorld world({.packet_bytes = kPackets});
  for (const std::size_t shift : {0U, 1U, 3U}) {
    for (const std::size_t count : {1U, 3U, 4U, 5U, 127U}) {
      std::vector<std::vector<std::uint8_t>> in, out;
      std::vector<BoundCall> bound;
      std::vector<DeviceCall> calls;
      for (const int rank : {0, 1}) {
        in.emplace_back(200, static_cast<std::uint8_t>(3 + 4 * rank));
        out.emplace_back(200, std::uint8_t{255});
        bound.push_back(
            world.bound(rank, {.algorithm = sum_, .count = static_cast<Count>(count)}, Dtype::u8, Op::sum).value());
      }
      for (const std::size_t rank : {0U, 1U}) {
        calls.push_back({.full = bound[rank].full.view(),
                         .tail = bound[rank].tail.view(),
                         .input = reinterpret_cast<const std::byte*>(in[rank].data() + shift),
                         .output = reinterpret_cast<std::byte*>(out[rank].data() + shift),
                         .segment_bytes = bound[rank].segment_bytes,
                         .full_segments = bound[rank].full_segments,
                         .segments = bound[rank].segments(),
                         .by_packets = true});
      }
      world.launch({.calls = calls.data(), .parties = 2}, Dtype::u8, Op::sum);
      ASSERT_EQ(world.failure().kind, DeviceFailure::none);
      for (const auto& one : out) {
        for (std::size_t i = 0; i < one.size(); ++i) {
          ASSERT_EQ(one[i], i >= shift && i < shift + count ? 10 : 255) << count << " from " << shift << " at " << i;
        }
      }
    }
  }
}

/// Across 2^31 and 2^32, where the low half begins anew. Between them messages were short.
TEST_F(PacketsOnTeams, NumbersOfAnySizeAreRight) {
  for (const std::uint64_t number : {kHalf - 3, 2 * kHalf - 6, 2 * kHalf - 5, 3 * kHalf - 4, 7 * kHalf - 4}) {
    HostWorld world({.ranks = 3, .threads = 2, .packet_bytes = kPackets, .devices = 2});
    run(world, {{32}, {9}});
    for (std::uint64_t before = kHalf; before < number; before += kHalf) {
      set_number(world, before - 3);
      run(world, std::vector<Operation>(6, {1}));
    }
    set_number(world, number);
    run(world, {{1}, {32}, {1}, {30, false}, {1}, {32}, {2}, {32}});
  }
}

/// A packet that operation 5 has left is of operation 2^32 + 5 by its flag, and rank 1 has not told that one.
TEST_F(PacketsOnTeams, AnOldPacketIsNotTakenForANewOne) {
  for (const bool are_renewed : {true, false}) {
    HostWorld world({.packet_bytes = kPackets});
    run(world, std::vector<Operation>(6, {32}));
    if (are_renewed) {
      set_number(world, kHalf - 2);
      run(world, std::vector<Operation>(6, {1, false}));  // by flags: they renew all the same
    }
    set_number(world, 2 * kHalf + 4);
    run(world, {{32}}, 1);
    EXPECT_EQ(world.failure().kind, are_renewed ? DeviceFailure::phase : DeviceFailure::none);
  }
}

TEST_F(PacketsOnTeams, WhoIsNotToldInTimeNamesTheRankAndThePhase) {
  for (const int threads : {1, 2}) {
    HostWorld world({.ranks = 3, .threads = threads, .packet_bytes = kPackets});
    run(world, {{9}, {9}});
    run(world, {{9}}, 2);
    EXPECT_EQ(world.failure().kind, DeviceFailure::phase);
    EXPECT_EQ(world.failure().peer, 2U);
    EXPECT_EQ(world.failure().wanted, 1U);
    EXPECT_EQ(world.failure().launch, 2U);
  }
}

}  // namespace
}  // namespace tutti
