// SPDX-License-Identifier: Apache-2.0
// Worlds of thread blocks as teams of threads of the host: plans that bind gives them, several operations in one
// launch, every output against what its origins say.
#include "impl/execute/device_machine.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <ostream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "suites/unit/impl/execute/host_world.h"
#include "suites/unit/impl/reduce/reference.h"

namespace tutti {
namespace {

/// Bytes at an address of the given remainder modulo 64, between sentinels.
class Room {
 public:
  Room(std::size_t bytes, std::size_t remainder) : memory_(bytes + 3 * kEdge, kSentinelByte), bytes_(bytes) {
    const auto base = reinterpret_cast<std::uintptr_t>(memory_.data()) % kEdge;
    begin_ = kEdge + (kEdge - base) % kEdge + remainder;
  }
  [[nodiscard]] std::byte* data() { return memory_.data() + begin_; }
  [[nodiscard]] bool has_its_edges() const {
    const auto is_sentinel = [](std::byte one) { return one == kSentinelByte; };
    const auto begin = memory_.begin() + static_cast<std::ptrdiff_t>(begin_);
    return std::all_of(memory_.begin(), begin, is_sentinel) &&
           std::all_of(begin + static_cast<std::ptrdiff_t>(bytes_), memory_.end(), is_sentinel);
  }

 private:
  static constexpr std::size_t kEdge = 64;
  static constexpr std::byte kSentinelByte{0x5a};
  std::vector<std::byte> memory_;
  std::size_t bytes_;
  std::size_t begin_ = 0;
};

/// Small numbers that every dtype holds, and so their sums over four ranks.
template <class T>
T small_element(int rank, std::size_t operation, Count index) {
  const auto value = static_cast<int>((static_cast<std::size_t>(index) * 5 + operation * 3) % 7) % 4 + (rank % 2);
  if constexpr (std::is_class_v<T>) {
    return T::from_float(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}
/// What premul_sum multiplies the rank's input by.
template <class T>
T factor_of(int rank) {
  if constexpr (std::is_class_v<T>) {
    return T::from_float(static_cast<float>(rank % 2 + 1));
  } else {
    return static_cast<T>(rank % 2 + 1);
  }
}

/// Calls that all ranks make in one launch, on buffers of their own.
template <class T>
class Chain {
 public:
  Chain(HostWorld& world, Dtype dtype, Op op, std::size_t remainder = 0)
      : world_(world), ranks_(world.shape().ranks), dtype_(dtype), op_(op), remainder_(remainder * sizeof(T)) {}

  /// False where the plans do not fit the world.
  bool add(const TeamCall& call) {
    std::vector<BoundCall> bound;
    for (int rank = 0; rank < ranks_; ++rank) {
      Result<BoundCall> one = world_.bound(rank, call, dtype_, op_);
      if (!one.is_ok()) {
        EXPECT_EQ(one.status().code(), Code::resource) << one.status().message();
        return false;
      }
      bound.push_back(std::move(one).value());
    }
    const std::size_t operation = calls_.size() / static_cast<std::size_t>(ranks_);
    const Problem problem = problem_of(call);
    for (int rank = 0; rank < ranks_; ++rank) {
      plans_.push_back(std::make_unique<BoundCall>(std::move(bound[static_cast<std::size_t>(rank)])));
      const BoundCall& plan = *plans_.back();
      const std::size_t in = bytes_of(input_blocks(problem, rank) * call.count);
      const std::size_t out = bytes_of(output_blocks(problem, rank) * call.count);
      inputs_.push_back(std::make_unique<Room>(in, remainder_));
      outputs_.push_back(std::make_unique<Room>(out, remainder_));
      std::memset(outputs_.back()->data(), 0xee, out);
      for (Count i = 0; i < input_blocks(problem, rank) * call.count; ++i) {
        const T element = small_element<T>(rank, operation, i);
        std::memcpy(inputs_.back()->data() + bytes_of(i), &element, sizeof element);
      }
      DeviceCall one{.full = plan.full.view(),
                     .tail = plan.tail.view(),
                     .input = inputs_.back()->data(),
                     .output = outputs_.back()->data(),
                     .segment_bytes = plan.segment_bytes,
                     .full_segments = plan.full_segments,
                     .segments = plan.segments()};
      const T factor = factor_of<T>(rank);
      std::memcpy(&one.factor, &factor, sizeof factor);
      calls_.push_back(one);
    }
    made_.push_back(call);
    return true;
  }

  [[nodiscard]] std::size_t operations() const { return made_.size(); }
  [[nodiscard]] Count segments() const {
    Count all = 0;
    for (const DeviceCall& call : calls_) all += call.segments;
    return all / ranks_;
  }

  void run() {
    const DeviceWork work{.calls = calls_.data(), .parties = ranks_, .operations = static_cast<int>(made_.size())};
    world_.launch(work, dtype_, op_);
    ASSERT_EQ(world_.failure().kind, DeviceFailure::none)
        << "rank " << world_.failure().rank << " waits for rank " << world_.failure().peer << " in operation "
        << world_.failure().operation;
    for (std::size_t i = 0; i < made_.size() && !testing::Test::HasFailure(); ++i) expect_right(i);
  }

 private:
  [[nodiscard]] Problem problem_of(const TeamCall& call) const {
    return {.collective = call.algorithm->collective, .ranks = ranks_, .root = call.root};
  }
  [[nodiscard]] static std::size_t bytes_of(Count elements) { return static_cast<std::size_t>(elements) * sizeof(T); }

  void expect_right(std::size_t operation) {
    const TeamCall& call = made_[operation];
    const Problem problem = problem_of(call);
    SCOPED_TRACE(fmt::format("{} {} of {} {}, {}, {} buffers, on {} ranks, operation {}", to_string(problem.collective),
                             call.algorithm->name, call.count, to_string(dtype_), to_string(op_),
                             to_string(call.buffers), ranks_, operation));
    for (int rank = 0; rank < ranks_; ++rank) {
      const std::size_t at = operation * static_cast<std::size_t>(ranks_) + static_cast<std::size_t>(rank);
      EXPECT_TRUE(inputs_[at]->has_its_edges() && outputs_[at]->has_its_edges()) << "rank " << rank;
      for (int block = 0; block < output_blocks(problem, rank); ++block) {
        const Origin origin = origin_of(problem, rank, block);
        for (Count i = 0; i < call.count; ++i) {
          T found;
          std::memcpy(&found, outputs_[at]->data() + bytes_of(block * call.count + i), sizeof found);
          const T expected = expected_element(problem, origin, operation, origin.block * call.count + i);
          ASSERT_EQ(std::memcmp(&found, &expected, sizeof found), 0)
              << "rank " << rank << ", block " << block << ", element " << i;
        }
      }
    }
  }
  [[nodiscard]] T expected_element(const Problem& problem, const Origin& origin, std::size_t operation,
                                   Count index) const {
    std::vector<T> column;
    for (int rank = origin.first; rank <= origin.last; ++rank) {
      const T element = small_element<T>(rank, operation, index);
      column.push_back(element);
      if (op_ != Op::premul_sum || !is_reducing(problem.collective)) continue;
      for (int times = 1; times < rank % 2 + 1; ++times) column.push_back(element);
    }
    if (!is_reducing(problem.collective)) return column[0];
    return reference_reduced(op_, op_ == Op::avg, column);
  }

  HostWorld& world_;
  int ranks_;
  Dtype dtype_;
  Op op_;
  std::size_t remainder_;
  std::vector<TeamCall> made_;
  std::vector<std::unique_ptr<BoundCall>> plans_;  // [operation][rank]
  std::vector<std::unique_ptr<Room>> inputs_, outputs_;
  std::vector<DeviceCall> calls_;
};

/// Every algorithm, with counts around P, in both kinds of buffers: those that reduce, or the others.
template <class T>
void add_all(Chain<T>& chain, int ranks, bool reduces, Op op, const std::vector<Count>& counts) {
  for (const Algorithm* const one : all_algorithms()) {
    if (is_reducing(one->collective) != reduces || (reduces && !takes_op(one->collective, op))) continue;
    for (const Count count : has_data(one->collective) ? counts : std::vector<Count>{0}) {
      for (const Buffers buffers : {Buffers::private_, Buffers::shared}) {
        const int root = is_rooted(one->collective) ? static_cast<int>(count) % ranks : 0;
        chain.add({.algorithm = one, .count = count, .buffers = buffers, .root = root});
      }
    }
  }
}

struct TeamsOf {
  int ranks, lanes, threads;
  int devices = 1;
};
void PrintTo(const TeamsOf& of, std::ostream* out) {
  *out << of.ranks << " ranks, " << of.lanes << " lanes, " << of.threads << " threads, " << of.devices << " devices";
}
class DeviceMachineTeams : public testing::TestWithParam<TeamsOf> {
 protected:
  [[nodiscard]] static TeamsShape shape() {
    return {.ranks = GetParam().ranks,
            .lanes = GetParam().lanes,
            .threads = GetParam().threads,
            .devices = GetParam().devices};
  }
};
INSTANTIATE_TEST_SUITE_P(Shapes, DeviceMachineTeams,
                         testing::Values(TeamsOf{1, 1, 1}, TeamsOf{1, 2, 2}, TeamsOf{2, 1, 1}, TeamsOf{2, 2, 1},
                                         TeamsOf{2, 1, 2}, TeamsOf{2, 2, 2}, TeamsOf{3, 1, 1}, TeamsOf{3, 2, 2},
                                         TeamsOf{4, 1, 1}, TeamsOf{4, 2, 1}, TeamsOf{4, 1, 2}, TeamsOf{7, 2, 1},
                                         TeamsOf{2, 1, 1, 2}, TeamsOf{3, 2, 2, 2}, TeamsOf{4, 1, 2, 4},
                                         TeamsOf{5, 1, 1, 3}, TeamsOf{8, 1, 1, 2}),
                         [](const auto& instance) {
                           const TeamsOf& of = instance.param;
                           return fmt::format("{}_ranks_{}_lanes_{}_threads_{}_devices", of.ranks, of.lanes, of.threads,
                                              of.devices);
                         });

TEST_P(DeviceMachineTeams, WalkEveryAlgorithmInOneLaunch) {
  const int ranks = GetParam().ranks;
  const std::vector<Count> counts{0, 1, std::max(ranks - 1, 2), ranks, ranks + 1, 1023};
  for (const bool reduces : {true, false}) {
    HostWorld world(shape());
    Chain<float> chain(world, Dtype::f32, reduces ? Op::sum : Op::none);
    add_all(chain, ranks, reduces, Op::sum, counts);
    EXPECT_GT(chain.operations(), 100U);
    EXPECT_EQ(chain.segments() > static_cast<Count>(chain.operations()), ranks > 1 || GetParam().lanes > 1);
    chain.run();
  }
}

TEST_P(DeviceMachineTeams, DivideAndMultiplyOnce) {
  const int ranks = GetParam().ranks;
  const std::vector<Count> counts{1, ranks + 1, 300};
  {
    HostWorld world(shape());
    Chain<BFloat16> chain(world, Dtype::bf16, Op::avg);
    add_all(chain, ranks, true, Op::avg, counts);
    chain.run();
  }
  HostWorld world(shape());
  Chain<double> chain(world, Dtype::f64, Op::premul_sum);
  add_all(chain, ranks, true, Op::premul_sum, counts);
  chain.run();
}

// Four bytes after a line: no pack of 16 fits. Two and one of narrower elements.
TEST_P(DeviceMachineTeams, TakeAddressesThatAreNoMultiplesOfAPack) {
  const int ranks = GetParam().ranks;
  const std::vector<Count> counts{1, 7, 65};
  {
    HostWorld world(shape());
    Chain<float> chain(world, Dtype::f32, Op::sum, 1);
    add_all(chain, ranks, true, Op::sum, counts);
    chain.run();
  }
  {
    HostWorld world(shape());
    Chain<Half> chain(world, Dtype::f16, Op::max, 1);
    add_all(chain, ranks, true, Op::max, counts);
    chain.run();
  }
  HostWorld world(shape());
  Chain<std::int8_t> chain(world, Dtype::i8, Op::none, 3);
  add_all(chain, ranks, false, Op::none, counts);
  chain.run();
}

TEST(DeviceMachine, ReducesEveryDtype) {
  for (const Dtype dtype : all_dtypes()) {
    visit_dtype(dtype, [&]<class T>(std::type_identity<T>) {
      HostWorld world({.ranks = 3, .threads = 2});
      Chain<T> chain(world, dtype, Op::sum);
      for (const char* const name : {"one_shot", "ring", "two_shot", "halving"}) {
        for (const Count count : {5, 200})
          chain.add({.algorithm = algorithm(Collective::all_reduce, name), .count = count});
      }
      EXPECT_EQ(chain.operations(), 8U);
      chain.run();
    });
  }
}

// Two generations, as few slots as the plans take, and messages of a hundred slices.
TEST(DeviceMachine, SendsLongMessagesThroughFewSlots) {
  for (const int lanes : {1, 3}) {
    HostWorld world({.ranks = 3, .lanes = lanes, .generations = 2, .slots = 1, .slot_bytes = 64});
    Chain<std::int32_t> chain(world, Dtype::i32, Op::none);
    for (const auto& [collective, name] : {std::pair{Collective::broadcast, "chain"},
                                           {Collective::broadcast, "knomial"},
                                           {Collective::all_to_all, "pairwise"},
                                           {Collective::gather, "linear"},
                                           {Collective::scatter, "linear"},
                                           {Collective::sendrecv, "channel"}}) {
      EXPECT_TRUE(chain.add({.algorithm = algorithm(collective, name), .count = 1600})) << name;
    }
    chain.run();
    HostWorld two({.ranks = 3, .lanes = lanes, .generations = 2, .slots = 2, .slot_bytes = 64});
    Chain<std::int32_t> sums(two, Dtype::i32, Op::sum);
    EXPECT_TRUE(sums.add({.algorithm = algorithm(Collective::all_reduce, "ring"), .count = 1600}));
    EXPECT_TRUE(sums.add({.algorithm = algorithm(Collective::reduce, "knomial"), .count = 1600}));
    sums.run();
  }
}

// A MOVE from all ranks to all ranks.
TEST(DeviceMachine, MayHaveMoreThan64Addresses) {
  for (const int ranks : {20, 40, 70}) {
    HostWorld world({.ranks = ranks});
    Chain<std::int32_t> chain(world, Dtype::i32, Op::sum);
    for (const char* const name : {"one_shot", "two_shot"}) {
      for (const Buffers buffers : {Buffers::private_, Buffers::shared}) {
        chain.add({.algorithm = algorithm(Collective::all_reduce, name), .count = 100, .buffers = buffers});
      }
    }
    EXPECT_EQ(chain.operations(), 4U);
    chain.run();
  }
}

/// Addresses of a MOVE.
int addresses_of(const Plan& plan, const PlanOp& op) {
  int all = 0;
  for (const auto& operands : {plan.destinations(op), plan.sources(op)}) {
    for (const PlanOperand& one : operands) all += one.is_mine || one.space == Space::channel ? 1 : one.ranks.n;
  }
  return all;
}

TEST(DeviceMachine, HasRoomForTheAddressesOfEveryMove) {
  int most = 0;
  for (const int ranks : {1, 2, 3, 4, 5, 8, 16, 33}) {
    HostWorld world({.ranks = ranks, .slots = 8, .slot_bytes = 16384, .scratch_bytes = 1 << 18});
    for (const Algorithm* const one : all_algorithms()) {
      for (const Count count : {Count{1}, Count{ranks + 1}, Count{5000}}) {
        for (const Buffers buffers : {Buffers::private_, Buffers::shared}) {
          for (const int rank : {0, ranks / 2, ranks - 1}) {
            const auto call = world.bound(
                rank, {.algorithm = one, .count = has_data(one->collective) ? count : 0, .buffers = buffers},
                Dtype::f32, Op::sum);
            if (!call.is_ok()) continue;
            for (const PlanOp& op : call.value().plan(0).ops()) {
              if (op.verb != Verb::move) continue;
              const int addresses = addresses_of(call.value().plan(0), op);
              ASSERT_LE(addresses, most_device_addresses(ranks)) << one->name << " on " << ranks;
              most = std::max(most, addresses);
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(most, 66) << "a shared two_shot on 33 ranks";
}

/// All that teams look at while they wait lies on their own device.
TEST(DeviceMachine, LooksAtNoMemoryOfAnotherDevice) {
  for (const auto& [ranks, devices, threads] : {std::tuple{2, 2, 1}, {3, 2, 2}, {4, 4, 1}, {5, 3, 1}, {4, 1, 1}}) {
    SCOPED_TRACE(fmt::format("{} ranks on {} devices", ranks, devices));
    for (const bool reduces : {true, false}) {
      HostWorld world({.ranks = ranks, .threads = threads, .slots = 2, .devices = devices});
      world.watch();
      Chain<float> chain(world, Dtype::f32, reduces ? Op::sum : Op::none);
      add_all(chain, ranks, reduces, Op::sum, {1, ranks + 1, 300});
      chain.run();
      EXPECT_EQ(world.watched().faults(), std::vector<std::string>());
      EXPECT_EQ(world.watched().words_between_devices() > 5, devices > 1);
      if (HasFailure()) return;
    }
  }
}

/// Rank 0 shows its input and the others what they have, then all of them, in the same lines, what rank 0 has shown.
Step twice(const Problem& problem, int rank, int index) {
  const int ranks = problem.ranks;
  const UnitSet all = unit(0);
  switch (index) {
    case 0:
      return move({scratch(rank, all)}, {rank == 0 ? input(rank, all) : output(rank, all)});
    case 3:
      return move({output(rank, all)}, {rank == 0 ? input(rank, all) : scratch(0, all)});
    case 6:
      return move({scratch(rank, all)}, {output(rank, all)});
    case 9:
      return move({output(rank, all)}, {scratch((rank + 1) % ranks, all)});
    case 1:
    case 7:
      return signal(others(rank, ranks), index == 1 ? 1 : 3, {.space = Space::scratch, .units = all});
    case 2:
    case 8:
      return wait(others(rank, ranks), index == 2 ? 1 : 3);
    case 4:
    case 10:
      return signal(others(rank, ranks), index == 4 ? 2 : 4);
    default:
      return wait(others(rank, ranks), index == 5 ? 2 : 4);
  }
}

TEST(DeviceMachine, TellsALineAgainThatHasChanged) {
  const Algorithm algorithm{.collective = Collective::broadcast,
                            .name = "twice",
                            .shape = [](const Problem&) { return Shape{.units_per_block = 1, .scratch_units = 1}; },
                            .step_count = [](const Problem&, int) { return 12; },
                            .step = twice,
                            .synchronises = true};
  for (const int devices : {1, 2, 3}) {
    HostWorld world({.ranks = 3, .threads = 2, .devices = devices});
    Chain<std::int32_t> chain(world, Dtype::i32, Op::none);
    for (int times = 0; times < 10; ++times) ASSERT_TRUE(chain.add({.algorithm = &algorithm, .count = 3}));
    chain.run();
  }
}

/// A device's board has a copy of the lines of other devices' ranks, which their owners alone bring up to date.
TEST(DeviceMachine, NoPlanWritesTheLineOfAnotherRank) {
  int lines = 0;
  for (const int ranks : {2, 3, 4, 5, 7, 8}) {
    HostWorld world({.ranks = ranks, .slots = 8, .slot_bytes = 16384, .scratch_bytes = 1 << 18});
    for (const Algorithm* const one : all_algorithms()) {
      for (const Count count : {Count{1}, Count{2}, Count{ranks + 1}}) {
        for (int rank = 0; rank < ranks; ++rank) {
          const auto call =
              world.bound(rank, {.algorithm = one, .count = has_data(one->collective) ? count : 0}, Dtype::i8, Op::sum);
          if (!call.is_ok()) continue;
          const Plan& plan = call.value().plan(0);
          for (const PlanOp& op : plan.ops()) {
            if (op.verb != Verb::move) continue;
            for (const PlanOperand& to : plan.destinations(op)) {
              if (to.space != Space::line) continue;
              ++lines;
              ASSERT_TRUE(to.is_mine) << one->name << " of " << to_string(one->collective) << " on " << ranks;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(lines, 100);
}

/// Launch after launch.
void go_on(HostWorld& world) {
  for (int launch = 0; launch < 40; ++launch) {
    Chain<float> chain(world, Dtype::f32, Op::sum);
    for (const char* const name : {"one_shot", "ring"}) {
      chain.add({.algorithm = algorithm(Collective::all_reduce, name), .count = 1 + launch});  // at first for one lane
    }
    chain.run();
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(world.world().state(0, 0).number, 40U);
}

TEST(DeviceMachine, GoesOnFromOneLaunchToTheNext) {
  for (const int devices : {1, 2}) {
    HostWorld world({.ranks = 2, .lanes = 2, .threads = 2, .generations = 2, .devices = devices});
    go_on(world);
  }
}

}  // namespace
}  // namespace tutti
