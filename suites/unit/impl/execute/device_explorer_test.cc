// SPDX-License-Identifier: Apache-2.0
// The machine of thread blocks in every interleaving of two to four teams, which walk operations one after the
// other on two generations and one or two slots. After each a rank changes its input and its output, as a caller may:
// who reads late has wrong data, and who writes late is seen at the end. Rules that are broken on purpose are found.
// The file is long, for each broken rule stands beside the scene that finds it.
#include "suites/unit/impl/execute/device_explorer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <iostream>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "impl/algorithms/algorithm.h"
#include "impl/execute/device_move.h"
#include "impl/schedule/bind.h"
#include "suites/unit/impl/execute/device_memory.h"

namespace tutti::fibers {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

/// One operation of all teams.
struct TeamStep {
  Collective collective;
  std::string_view algorithm;
  Count count = 1;  ///< of int32
  Buffers buffers = Buffers::private_;
  int root = 0;
  bool by_packets = false;
};

struct TeamScene {
  std::string name;
  int ranks;
  int slots;
  std::vector<TeamStep> steps;
  int devices = 1;
};
void PrintTo(const TeamScene& scene, std::ostream* out) { *out << scene.name; }

enum class Breach {
  none,
  reuses_a_generation,     ///< nobody waits until it is free
  announces_before_move,   ///< a phase is announced before what it tells of is written
  completes_before_steps,  ///< an operation is told to be complete when it begins
  counts_a_slot_too_few,   ///< of those in use: one more seems free
  releases_before_read,    ///< a slot is given back before it is read
  flags_before_line,       ///< another device has the flag before the line that it tells of
  counts_at_receiver,      ///< slices that are given back are counted where nobody looks
  tells_another_device,    ///< what is for one device is stored on the board of another
};

constexpr int kMostOperations = 4;
constexpr int kMostRanks = 4;
constexpr std::size_t kMostElements = 64;  ///< of a buffer
constexpr std::byte kPoisonByte{0xa7};
constexpr std::uint64_t kForEver = std::uint64_t{1} << 40U;
constexpr int kAddresses = most_device_addresses(kMostRanks);

using Elements = std::array<std::int32_t, kMostElements>;

/// A byte of its own for each rank, so that a sum says which ranks are in it.
std::int32_t team_element(int rank, int operation, int index) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(1 + index % 16 + 16 * operation)
                                   << (8U * static_cast<unsigned>(rank)));
}

/// What each source has is read in a step of its own, and each destination is written in one.
struct SteppedMove {
  DeviceMoveFunction move;
  void operator()(const DeviceMove& one, int thread, int threads) const {
    std::array<Elements, kMostRanks> read;
    std::array<const std::byte*, kMostRanks> sources;
    Elements result;
    std::byte* const destination = reinterpret_cast<std::byte*>(&result);
    const auto bytes = static_cast<std::size_t>(one.bytes);
    for (std::size_t i = 0; i < static_cast<std::size_t>(one.source_count); ++i) {
      Fiber::stop(Stop::ready);
      std::memcpy(&read[i], one.sources[i], bytes);
      sources[i] = reinterpret_cast<const std::byte*>(&read[i]);
    }
    DeviceMove here = one;
    here.sources = sources.data();
    here.destinations = &destination;
    here.destination_count = 1;
    move(here, thread, threads);
    for (int i = 0; i < one.destination_count; ++i) {
      Fiber::stop(Stop::ready);
      std::memcpy(one.destinations[i], destination, bytes);
    }
  }
};
using RightMachine = DeviceMachine<FiberTarget, SteppedMove>;

/// Breaks a rule around the right machine.
class BrokenMachine : public RightMachine {
 public:
  BrokenMachine(const DeviceWorld& world, const DeviceWork& work, const Place& place, FiberTarget& target,
                const SteppedMove& move, Breach breach)
      : RightMachine(world, work, place, target, move), world_(world), place_(place), breach_(breach) {}

  bool begin(const DeviceCall& call, const PlanView& plan, std::int64_t segment, int operation) {
    plan_hash_ = plan.header().hash;
    if (!RightMachine::begin(call, plan, segment, operation)) return false;
    if (breach_ != Breach::completes_before_steps) return true;
    for (int device = 0; device < world_.devices; ++device) {
      std::uint64_t* const completion = world_.completion(device, place_.rank, place_.lane);
      FiberTarget::store_release(completion, world_.state(place_.rank, place_.lane).number + 1);
    }
    return true;
  }
  void move(const PlanOp& op, const PlanOperand* operand) {
    if (breach_ == Breach::announces_before_move && op.has_channel == 0) {
      put_off();
      late_ = &op;
      late_operand_ = operand;
      return;
    }
    if (breach_ == Breach::releases_before_read) {
      for (int i = op.destinations; i < op.destinations + op.sources; ++i) {
        if (operand[i].space == Space::channel) release(operand[i].ranks.first);
      }
    }
    RightMachine::move(op, operand);
  }
  void announce(const PlanOp& op, const PlanOperand* operand) {
    for (int device = 0; device < world_.devices && breach_ == Breach::flags_before_line; ++device) {
      const std::uint64_t number = world_.state(place_.rank, place_.lane).number + 1;
      DeviceLine& line = world_.line(device, place_.rank, place_.lane, number % 2);
      if (device == world_.here) continue;
      line.hash = plan_hash_;
      FiberTarget::store_release(&line.flag, number << 16U | op.phase);
      Fiber::stop(Stop::ready);
    }
    RightMachine::announce(op, operand);
    put_off();
  }
  void close_channels(const PlanOp& op, const PlanOperand* operand) {
    if (breach_ != Breach::counts_at_receiver) return RightMachine::close_channels(op, operand);
    DeviceWorld lost = world_;  // whose counts lie in the receiver's own slab
    std::array<std::byte*, kMostRanks> slabs{};
    for (int rank = 0; rank < world_.ranks; ++rank) slabs[static_cast<std::size_t>(rank)] = world_.slabs[place_.rank];
    lost.slabs = slabs.data();
    for (int i = 0; i < op.destinations + op.sources; ++i) {
      if (operand[i].space != Space::channel) continue;
      if (i < op.destinations) return RightMachine::close_channels(op, operand);
      auto* const words = reinterpret_cast<std::uint64_t*>(&world_.state(place_.rank, place_.lane) + 1);
      const int peer = operand[i].ranks.first;
      FiberTarget::store_release(lost.released(peer, place_.rank, place_.lane), ++words[world_.ranks + peer]);
    }
  }
  bool heard_all(const RankSet& set, std::uint16_t phase) {
    put_off();
    return RightMachine::heard_all(set, phase);
  }
  void end() {
    put_off();
    RightMachine::end();
  }

 private:
  void put_off() {
    if (late_ != nullptr) RightMachine::move(*late_, late_operand_);
    late_ = nullptr;
  }
  /// What close_channels does once more later.
  void release(int peer) {
    const auto* const words = reinterpret_cast<const std::uint64_t*>(&world_.state(place_.rank, place_.lane) + 1);
    const std::uint64_t received = words[world_.ranks + peer];
    FiberTarget::store_release(world_.released(peer, place_.rank, place_.lane), received + 1);
  }

  const DeviceWorld& world_;
  Place place_;
  Breach breach_;
  std::uint64_t plan_hash_ = 0;
  const PlanOp* late_ = nullptr;
  const PlanOperand* late_operand_ = nullptr;
};

/// Everything that changes.
struct Shared {
  std::array<std::array<Elements, kMostRanks>, kMostOperations> inputs, outputs;
  std::array<std::array<std::byte*, kAddresses>, kMostRanks> addresses;
  std::array<int, kMostRanks> wrong_in;  ///< operation, from 1, whose output was wrong; 0: none
  DeviceFailure failure;
  std::uint64_t abort_word;
};

/// The ranks of a scene, each a fiber.
class Teams {
 public:
  Teams(const TeamScene& scene, Breach breach) : scene_(scene), breach_(breach), lists_(scene.ranks, scene.devices) {
    world_ = {.ranks = scene.ranks,
              .lanes = 1,
              .generations = 2,
              .slots = scene.slots,
              .scratch_bytes = 256,
              .slot_bytes = 64,
              .packet_bytes = std::ranges::any_of(scene.steps, &TeamStep::by_packets) ? kDeviceLine : 0};
    const std::size_t lists = lists_.bytes(world_);
    bytes_ = lists + sizeof(Shared);
    memory_.reset(static_cast<std::byte*>(::operator new(bytes_, std::align_val_t(kDeviceLine))));
    std::memset(memory_.get(), 0, bytes_);
    lists_.place(world_, memory_.get());
    shared_ = reinterpret_cast<Shared*>(memory_.get() + lists);
    world_.abort_word = &shared_->abort_word;
    world_.failure = &shared_->failure;
    for (int rank = 0; rank < scene.ranks; ++rank) {
      set_up(rank);
      worlds_.push_back(world_);
      worlds_.back().here = lists_.device_of(rank);
      if (breach == Breach::tells_another_device) swap_boards(worlds_.back());
    }
    for (std::size_t i = 0; i < scene.steps.size(); ++i) add(scene.steps[i], static_cast<int>(i));
    calls_.reserve(scene.steps.size() * static_cast<std::size_t>(scene.ranks));
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      const std::size_t operation = i / static_cast<std::size_t>(scene.ranks),
                        rank = i % static_cast<std::size_t>(scene.ranks);
      calls_.push_back({.full = plans_[i].view(),
                        .input = reinterpret_cast<std::byte*>(&shared_->inputs[operation][rank]),
                        .output = reinterpret_cast<std::byte*>(&shared_->outputs[operation][rank]),
                        .full_segments = 1,
                        .segments = 1,
                        .by_packets = scene.steps[operation].by_packets});
    }
    for (int rank = 0; rank < scene.ranks; ++rank) seats_.push_back({this, rank});
    for (Seat& seat : seats_) fibers_.push_back(std::make_unique<Fiber>(&Teams::run_seat, &seat));
  }

  [[nodiscard]] Exploration explore() {
    return FiberExplorer({memory_.get(), bytes_}, fibers_, [this](bool is_end) { return wrong(is_end); }).explore();
  }

 private:
  struct Seat {
    Teams* teams;
    int rank;
  };
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, std::align_val_t(kDeviceLine)); }
  };

  void set_up(int rank) {
    if (breach_ == Breach::reuses_a_generation) world_.state(rank, 0).free_until = kForEver;
    for (int from = 0; from < world_.ranks && breach_ == Breach::counts_a_slot_too_few; ++from) {
      *world_.released(from, rank, 0) = 1;
    }
  }

  /// Of three devices the two that are not `world`'s own.
  void swap_boards(DeviceWorld& world) {
    std::vector<std::byte*>& boards = swapped_.emplace_back(world.boards, world.boards + world.devices);
    std::swap(boards[static_cast<std::size_t>((world.here + 1) % 3)],
              boards[static_cast<std::size_t>((world.here + 2) % 3)]);
    world.boards = boards.data();
  }

  void add(const TeamStep& step, int operation) {
    const Problem problem{.collective = step.collective, .ranks = world_.ranks, .root = step.root};
    const auto algorithm = find_algorithm(step.collective, step.algorithm);
    ASSERT_TRUE(algorithm.is_ok()) << algorithm.status().message();
    const Schedule schedule = schedule_of(*algorithm.value(), problem);
    const bool has_bytes = has_data(step.collective);
    const Count count = has_bytes ? step.count : 0;
    for (int rank = 0; rank < world_.ranks; ++rank) {
      const auto call =
          bind(schedule, {.rank = rank,
                          .count = count,
                          .dtype = Dtype::i32,
                          .op = is_reducing(step.collective) ? Op::sum : Op::none,
                          .buffers = step.buffers,
                          .resources = {.slots = world_.slots,
                                        .slot_bytes = static_cast<std::int64_t>(world_.slot_bytes),
                                        .scratch_bytes = static_cast<std::int64_t>(world_.scratch_bytes)}});
      ASSERT_TRUE(call.is_ok()) << call.status().message();
      ASSERT_EQ(call.value().segments(), 1);
      plans_.push_back(call.value().plan(0));
      fill(problem, operation, rank, count);
    }
    moves_.push_back({device_move_for(Dtype::i32, is_reducing(step.collective) ? Op::sum : Op::none)});
  }

  void fill(const Problem& problem, int operation, int rank, Count count) {
    const auto at = static_cast<std::size_t>(operation), who = static_cast<std::size_t>(rank);
    for (int i = 0; i < input_blocks(problem, rank) * static_cast<int>(count); ++i) {
      shared_->inputs[at][who].at(static_cast<std::size_t>(i)) = team_element(rank, operation, i);
    }
    Elements& expected = expected_[at][who];
    for (int block = 0; block < output_blocks(problem, rank); ++block) {
      const Origin origin = origin_of(problem, rank, block);
      for (int i = 0; i < static_cast<int>(count); ++i) {
        std::int32_t& sum = expected.at(static_cast<std::size_t>(block * count + i));
        for (int from = origin.first; from <= origin.last; ++from) {
          sum |= team_element(from, operation, origin.block * static_cast<int>(count) + i);
        }
      }
    }
  }

  static void run_seat(void* argument) {
    const auto* const seat = static_cast<Seat*>(argument);
    seat->teams->run(seat->rank);
  }
  void run(int rank) {
    const auto who = static_cast<std::size_t>(rank);
    for (std::size_t operation = 0; operation < moves_.size(); ++operation) {
      const DeviceWork work{.calls = calls_.data() + operation * static_cast<std::size_t>(world_.ranks),
                            .parties = world_.ranks};
      FiberTarget target;
      const RightMachine::Place place{.rank = rank, .addresses = shared_->addresses[who].data()};
      const bool is_through = breach_ == Breach::none ? run_lane<FiberTarget, SteppedMove>(
                                                            worlds_[who], work, rank, place, target, moves_[operation])
                                                      : run_broken(work, place, target, moves_[operation]);
      if (!is_through) return;
      Elements& output = shared_->outputs[operation][who];
      const bool is_right = std::memcmp(&output, &expected_[operation][who], sizeof output) == 0;
      if (!is_right) shared_->wrong_in[who] = static_cast<int>(operation) + 1;
      poison(output);
      poison(shared_->inputs[operation][who]);
    }
  }
  /// As run_lane.
  bool run_broken(const DeviceWork& work, const RightMachine::Place& place, FiberTarget& target,
                  const SteppedMove& move) {
    BrokenMachine machine(worlds_[static_cast<std::size_t>(place.rank)], work, place, target, move, breach_);
    const DeviceCall& call = work.calls[place.rank];
    Lane lane;
    if (!machine.begin(call, call.full, 0, 0)) return false;
    if (!(call.by_packets ? machine.exchange_packets(call.full) : advance(lane, call.full, machine))) return false;
    machine.end();
    machine.leave();
    return true;
  }
  static void poison(Elements& elements) { std::memset(&elements, static_cast<int>(kPoisonByte), sizeof elements); }

  [[nodiscard]] std::string wrong(bool is_end) const {
    const DeviceFailure& failure = shared_->failure;
    if (failure.kind != DeviceFailure::none) {
      return fmt::format("rank {} gives up for rank {}: kind {}", failure.rank, failure.peer, failure.kind);
    }
    for (int rank = 0; rank < world_.ranks; ++rank) {
      const int operation = shared_->wrong_in[static_cast<std::size_t>(rank)];
      if (operation > 0) return fmt::format("rank {} has a wrong output of operation {}", rank, operation);
    }
    Elements poisoned;
    poison(poisoned);
    for (std::size_t operation = 0; is_end && operation < moves_.size(); ++operation) {
      for (std::size_t rank = 0; rank < fibers_.size(); ++rank) {
        for (const auto* const all : {&shared_->inputs, &shared_->outputs}) {
          if ((*all)[operation][rank] == poisoned) continue;
          return fmt::format("a buffer of rank {} was written after operation {}", rank, operation + 1);
        }
      }
    }
    return "";
  }

  const TeamScene& scene_;
  Breach breach_;
  MemoryOfDevices lists_;
  DeviceWorld world_;
  std::vector<DeviceWorld> worlds_;  // [rank]
  std::deque<std::vector<std::byte*>> swapped_;
  std::size_t bytes_ = 0;
  std::unique_ptr<std::byte, Free> memory_;
  Shared* shared_ = nullptr;
  std::vector<Plan> plans_;        // [operation][rank]
  std::vector<DeviceCall> calls_;  // [operation][rank]
  std::vector<SteppedMove> moves_;
  std::array<std::array<Elements, kMostRanks>, kMostOperations> expected_{};
  std::vector<Seat> seats_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
};

constexpr TeamStep kSum{Collective::all_reduce, "one_shot"};
constexpr TeamStep kPackets{.collective = Collective::all_reduce, .algorithm = "one_shot", .by_packets = true};
constexpr TeamStep kTwoPackets{
    .collective = Collective::all_reduce, .algorithm = "one_shot", .count = 2, .by_packets = true};
constexpr TeamStep kRingSum{.collective = Collective::all_reduce, .algorithm = "ring", .count = 2};
constexpr TeamStep kSharedSum{
    .collective = Collective::all_reduce, .algorithm = "two_shot", .count = 2, .buffers = Buffers::shared};
constexpr TeamStep kStagedSum{.collective = Collective::all_reduce, .algorithm = "two_shot", .count = 2};
constexpr TeamStep kOffer{.collective = Collective::broadcast, .algorithm = "direct"};
constexpr TeamStep kLongOffer{
    .collective = Collective::broadcast, .algorithm = "direct", .count = 20};  // beyond a line
constexpr TeamStep kPass{.collective = Collective::broadcast, .algorithm = "chain"};
constexpr TeamStep kLongPass{.collective = Collective::broadcast, .algorithm = "chain", .count = 32};  // two slices
constexpr TeamStep kExchange{Collective::all_to_all, "pairwise"};
constexpr TeamStep kMeeting{.collective = Collective::barrier, .algorithm = "dissemination"};

const TeamScene kTeamScenes[] = {
    {"one_shot_2", 2, 1, {kSum, kSum, kSum}},
    {"one_shot_3", 3, 1, {kSum, kSum, kSum}},
    {"one_shot_4", 4, 1, {kSum, kSum, kSum}},
    {"two_shot_shared_2", 2, 1, {kSharedSum, kSharedSum, kSharedSum}},
    {"two_shot_shared_3", 3, 1, {kSharedSum, kSharedSum, kSharedSum}},
    {"two_shot_shared_4", 4, 1, {kSharedSum, kSharedSum, kSharedSum}},
    {"two_shot_private_2", 2, 1, {kStagedSum, kStagedSum, kStagedSum}},
    {"ring_2", 2, 2, {kRingSum, kRingSum, kRingSum}},
    {"ring_3", 3, 2, {kRingSum, kRingSum, kRingSum}},
    {"broadcast_direct_2", 2, 1, {kOffer, kOffer, kOffer}},
    {"broadcast_direct_3", 3, 1, {kOffer, kOffer, kOffer}},
    {"broadcast_direct_again_2", 2, 1, {kOffer, kOffer, kOffer, kOffer}},
    {"broadcast_direct_4", 4, 1, {kOffer, kOffer, kOffer}},
    {"broadcast_direct_long_2", 2, 1, {kLongOffer, kLongOffer, kLongOffer}},
    {"chain_one_slot_2", 2, 1, {kPass, kPass, kPass}},
    {"chain_one_slot_3", 3, 1, {kPass, kPass, kPass}},
    {"chain_one_slot_4", 4, 1, {kPass, kPass, kPass}},
    {"chain_slices_through_one_slot_2", 2, 1, {kLongPass, kLongPass, kLongPass}},
    {"chain_slices_through_two_slots_2", 2, 2, {kLongPass, kPass, kLongPass}},
    {"pairwise_one_slot_2", 2, 1, {kExchange, kExchange, kExchange}},
    {"pairwise_one_slot_3", 3, 1, {kExchange, kExchange, kExchange}},
    {"dissemination_2", 2, 1, {kMeeting, kMeeting, kMeeting}},
    {"dissemination_3", 3, 1, {kMeeting, kMeeting, kMeeting}},
    {"dissemination_4", 4, 1, {kMeeting, kMeeting, kMeeting}},
    {"mixed_3", 3, 2, {kSum, kOffer, kRingSum}},
    {"mixed_2", 2, 2, {kSum, kOffer, kRingSum}},
    {"credit_after_all_2", 2, 1, {kOffer, kSum, kOffer}},
    {"credit_after_all_3", 3, 1, {kSum, kOffer, kOffer}},
    {"one_shot_on_2_devices", 2, 1, {kSum, kSum, kSum}, 2},
    {"one_shot_3_on_2_devices", 3, 1, {kSum, kSum}, 2},
    {"one_shot_3_on_3_devices", 3, 1, {kSum, kSum}, 3},
    {"two_shot_shared_on_2_devices", 2, 1, {kSharedSum, kSharedSum, kSharedSum}, 2},
    {"two_shot_private_on_2_devices", 2, 1, {kStagedSum, kStagedSum, kStagedSum}, 2},
    {"ring_on_2_devices", 2, 2, {kRingSum, kRingSum, kRingSum}, 2},
    {"broadcast_direct_on_2_devices", 2, 1, {kOffer, kOffer, kOffer, kOffer}, 2},
    {"broadcast_direct_3_on_2_devices", 3, 1, {kOffer, kOffer, kOffer}, 2},
    {"broadcast_direct_long_on_2_devices", 2, 1, {kLongOffer, kLongOffer, kLongOffer}, 2},
    {"chain_slices_through_one_slot_on_2_devices", 2, 1, {kLongPass, kLongPass, kLongPass}, 2},
    {"chain_3_on_2_devices", 3, 1, {kPass, kPass, kPass}, 2},
    {"pairwise_3_on_2_devices", 3, 1, {kExchange, kExchange}, 2},
    {"dissemination_3_on_3_devices", 3, 1, {kMeeting, kMeeting, kMeeting}, 3},
    {"mixed_on_2_devices", 2, 2, {kSum, kOffer, kRingSum}, 2},
    {"packets_2", 2, 1, {kPackets, kPackets, kPackets, kPackets}},
    {"packets_3", 3, 1, {kPackets, kPackets, kPackets}},
    {"two_packets_2", 2, 1, {kTwoPackets, kPackets, kTwoPackets}},
    {"packets_and_flags_2", 2, 1, {kPackets, kSum, kPackets, kOffer}},
    {"packets_around_an_offer_2", 2, 1, {kPackets, kOffer, kPackets}},
    {"packets_on_2_devices", 2, 1, {kPackets, kTwoPackets, kPackets}, 2},
    {"packets_3_on_2_devices", 3, 1, {kPackets, kPackets}, 2},
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kHasSanitizer = true;
#else
constexpr bool kHasSanitizer = false;
#endif
constexpr const char* kWhySkipped = "fibers that go back are nothing a sanitizer can follow: skipped";

Exploration explore(const TeamScene& scene, Breach breach = Breach::none) {
  Teams teams(scene, breach);
  if (testing::Test::HasFatalFailure()) return {};
  return teams.explore();
}

class DeviceExplorer : public testing::TestWithParam<TeamScene> {};

TEST_P(DeviceExplorer, IsRightInEveryInterleaving) {
  if (kHasSanitizer) GTEST_SKIP() << kWhySkipped;
  const Exploration found = explore(GetParam());
  EXPECT_EQ(found.violation, "") << "after " << found.path;
  std::cout << GetParam().name << ": " << found.states << " states, all right\n";
  EXPECT_GT(found.states, 20U);
  EXPECT_GT(found.ends, 0U);
}

INSTANTIATE_TEST_SUITE_P(Scenes, DeviceExplorer, testing::ValuesIn(kTeamScenes),
                         [](const auto& instance) { return instance.param.name; });

struct BrokenTeams {
  std::string name;
  Breach breach;
  std::string scene;
  std::string finding;
};
void PrintTo(const BrokenTeams& broken, std::ostream* out) { *out << broken.name; }

class DeviceExplorerFinds : public testing::TestWithParam<BrokenTeams> {};

TEST_P(DeviceExplorerFinds, ABrokenRule) {
  if (kHasSanitizer) GTEST_SKIP() << kWhySkipped;
  const BrokenTeams& broken = GetParam();
  const auto* const scene = std::ranges::find(kTeamScenes, broken.scene, &TeamScene::name);
  ASSERT_NE(scene, std::end(kTeamScenes));
  const Exploration found = explore(*scene, broken.breach);
  EXPECT_THAT(found.violation, HasSubstr(broken.finding));
  std::cout << broken.name << ", " << found.states << " states: " << found.violation << "; after " << found.path
            << "\n";
}

INSTANTIATE_TEST_SUITE_P(
    Rules, DeviceExplorerFinds,
    testing::Values(
        BrokenTeams{"no_credit", Breach::reuses_a_generation, "broadcast_direct_2", "wrong output of operation 1"},
        BrokenTeams{"no_credit_of_packets", Breach::reuses_a_generation, "packets_around_an_offer_2", "deadlock"},
        BrokenTeams{"complete_before_packets", Breach::completes_before_steps, "packets_around_an_offer_2", "deadlock"},
        BrokenTeams{"no_credit_long", Breach::reuses_a_generation, "broadcast_direct_long_2",
                    "wrong output of operation 1"},
        BrokenTeams{"announced_before", Breach::announces_before_move, "one_shot_2", "wrong output of operation 1"},
        BrokenTeams{"announced_before_staging", Breach::announces_before_move, "broadcast_direct_long_2",
                    "wrong output"},
        BrokenTeams{"complete_before", Breach::completes_before_steps, "broadcast_direct_2",
                    "wrong output of operation 1"},
        BrokenTeams{"a_slot_too_few", Breach::counts_a_slot_too_few, "chain_one_slot_2", "wrong output"},
        BrokenTeams{"a_slot_too_few_of_two", Breach::counts_a_slot_too_few, "chain_slices_through_two_slots_2",
                    "rank 1 gives up for rank 0"},
        BrokenTeams{"released_before", Breach::releases_before_read, "chain_slices_through_one_slot_2", "wrong output"},
        BrokenTeams{"announced_before_on_2_devices", Breach::announces_before_move, "one_shot_on_2_devices",
                    "wrong output"},
        BrokenTeams{"no_credit_on_2_devices", Breach::reuses_a_generation, "broadcast_direct_on_2_devices",
                    "wrong output"},
        BrokenTeams{"flag_before_line", Breach::flags_before_line, "one_shot_on_2_devices",
                    "wrong output of operation 1"},
        BrokenTeams{"count_at_receiver", Breach::counts_at_receiver, "chain_slices_through_one_slot_on_2_devices",
                    "no rank can go on"},
        BrokenTeams{"another_device", Breach::tells_another_device, "dissemination_3_on_3_devices",
                    "no rank can go on"}),
    [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace tutti::fibers
