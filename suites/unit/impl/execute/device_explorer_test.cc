// SPDX-License-Identifier: Apache-2.0
// The machine of thread blocks in every interleaving of two to four teams, which walk operations one after the
// other on two generations and one or two slots. After each a rank changes its input and its output, as a caller may:
// who reads late has wrong data, and who writes late is seen at the end. Rules that are broken on purpose are found.
#include "suites/unit/impl/execute/device_explorer.h"

#include <algorithm>
#include <array>
#include <cstring>
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
};

struct TeamScene {
  std::string name;
  int ranks;
  int slots;
  std::vector<TeamStep> steps;
};
void PrintTo(const TeamScene& scene, std::ostream* out) { *out << scene.name; }

enum class Breach {
  none,
  reuses_a_generation,     ///< nobody waits until it is free
  announces_before_move,   ///< a phase is announced before what it tells of is written
  completes_before_steps,  ///< an operation is told to be complete when it begins
  counts_a_slot_too_few,   ///< of those in use: one more seems free
  releases_before_read,    ///< a slot is given back before it is read
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
    if (!RightMachine::begin(call, plan, segment, operation)) return false;
    if (breach_ != Breach::completes_before_steps) return true;
    std::uint64_t* const completion = world_.completion(place_.rank, place_.lane);
    FiberTarget::store_release(completion, world_.state(place_.rank, place_.lane).number + 1);
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
    RightMachine::announce(op, operand);
    put_off();
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
    auto* const count = reinterpret_cast<std::uint64_t*>(world_.channel(peer, place_.rank, place_.lane));
    FiberTarget::store_release(count, received + 1);
  }

  const DeviceWorld& world_;
  Place place_;
  Breach breach_;
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
  Teams(const TeamScene& scene, Breach breach) : scene_(scene), breach_(breach) {
    world_ = {.ranks = scene.ranks,
              .lanes = 1,
              .generations = 2,
              .slots = scene.slots,
              .scratch_bytes = 256,
              .slot_bytes = 64};
    const std::size_t slab = world_.slab_bytes();
    bytes_ = slab * static_cast<std::size_t>(scene.ranks) + sizeof(Shared);
    memory_.reset(static_cast<std::byte*>(::operator new(bytes_, std::align_val_t(kDeviceLine))));
    std::memset(memory_.get(), 0, bytes_);
    for (int rank = 0; rank < scene.ranks; ++rank)
      slabs_.push_back(memory_.get() + static_cast<std::size_t>(rank) * slab);
    shared_ = reinterpret_cast<Shared*>(memory_.get() + slab * static_cast<std::size_t>(scene.ranks));
    world_.slabs = slabs_.data();
    world_.abort_word = &shared_->abort_word;
    world_.failure = &shared_->failure;
    for (int rank = 0; rank < scene.ranks; ++rank) set_up(rank);
    for (std::size_t i = 0; i < scene.steps.size(); ++i) add(scene.steps[i], static_cast<int>(i));
    calls_.reserve(scene.steps.size() * static_cast<std::size_t>(scene.ranks));
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      const std::size_t operation = i / static_cast<std::size_t>(scene.ranks),
                        rank = i % static_cast<std::size_t>(scene.ranks);
      calls_.push_back({.full = plans_[i].view(),
                        .input = reinterpret_cast<std::byte*>(&shared_->inputs[operation][rank]),
                        .output = reinterpret_cast<std::byte*>(&shared_->outputs[operation][rank]),
                        .full_segments = 1,
                        .segments = 1});
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
    LaneState& state = world_.state(rank, 0);
    state.free_until = breach_ == Breach::reuses_a_generation ? kForEver : 2;
    for (int from = 0; from < world_.ranks && breach_ == Breach::counts_a_slot_too_few; ++from) {
      *reinterpret_cast<std::uint64_t*>(world_.channel(from, rank, 0)) = 1;
    }
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
      const bool is_through = breach_ == Breach::none ? run_lane<FiberTarget, SteppedMove>(world_, work, rank, place,
                                                                                           target, moves_[operation])
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
    BrokenMachine machine(world_, work, place, target, move, breach_);
    const DeviceCall& call = work.calls[place.rank];
    Lane lane;
    if (!machine.begin(call, call.full, 0, 0) || !advance(lane, call.full, machine)) return false;
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
  DeviceWorld world_;
  std::size_t bytes_ = 0;
  std::unique_ptr<std::byte, Free> memory_;
  std::vector<std::byte*> slabs_;
  Shared* shared_ = nullptr;
  std::vector<Plan> plans_;        // [operation][rank]
  std::vector<DeviceCall> calls_;  // [operation][rank]
  std::vector<SteppedMove> moves_;
  std::array<std::array<Elements, kMostRanks>, kMostOperations> expected_{};
  std::vector<Seat> seats_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
};

constexpr TeamStep kSum{Collective::all_reduce, "one_shot"};
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

INSTANTIATE_TEST_SUITE_P(Rules, DeviceExplorerFinds,
                         testing::Values(BrokenTeams{"no_credit", Breach::reuses_a_generation, "broadcast_direct_2",
                                                     "wrong output of operation 1"},
                                         BrokenTeams{"no_credit_long", Breach::reuses_a_generation,
                                                     "broadcast_direct_long_2", "wrong output of operation 1"},
                                         BrokenTeams{"announced_before", Breach::announces_before_move, "one_shot_2",
                                                     "wrong output of operation 1"},
                                         BrokenTeams{"announced_before_staging", Breach::announces_before_move,
                                                     "broadcast_direct_long_2", "wrong output"},
                                         BrokenTeams{"complete_before", Breach::completes_before_steps,
                                                     "broadcast_direct_2", "wrong output of operation 1"},
                                         BrokenTeams{"a_slot_too_few", Breach::counts_a_slot_too_few,
                                                     "chain_one_slot_2", "wrong output"},
                                         BrokenTeams{"a_slot_too_few_of_two", Breach::counts_a_slot_too_few,
                                                     "chain_slices_through_two_slots_2", "rank 1 gives up for rank 0"},
                                         BrokenTeams{"released_before", Breach::releases_before_read,
                                                     "chain_slices_through_one_slot_2", "wrong output"}),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace tutti::fibers
