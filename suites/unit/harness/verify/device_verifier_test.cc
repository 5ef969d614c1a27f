// SPDX-License-Identifier: Apache-2.0
// The verifier's text as a device runs it, on teams of host threads: it fills what the host fills, bit for bit, and its
// verdict is the host's, word by word, on right outputs and on all that is put wrong here.
#include "harness/verify/device_verifier.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/verify/buffers.h"
#include "harness/verify/check.h"
#include "harness/verify/device_text.h"
#include "harness/verify/diagnose.h"
#include "suites/unit/harness/verify/device_memory.h"
#include "suites/unit/harness/verify/outputs.h"

namespace tutti::harness::verify {
namespace {

using testing::HasSubstr;
using Bytes = std::vector<std::byte>;

/// Teams that divide no buffer evenly.
std::unique_ptr<Memory> on_teams(int teams = 3, int threads = 2) {
  return verified_host_memory(
      std::make_shared<DeviceVerifier>(make_teams_runner({.teams = teams, .threads = threads})));
}

/// Teams for sums, and for the rest one thread, which is quicker: the text is the same.
class Devices {
 public:
  [[nodiscard]] Memory& of(Op op) const { return op == Op::sum || op == Op::none ? *teams_ : *alone_; }

 private:
  std::unique_ptr<Memory> teams_ = on_teams();
  std::unique_ptr<Memory> alone_ = on_teams(1, 1);
};

/// Everything that a check says.
std::string said(const CheckResult& result) {
  return fmt::format("{} checked, {} wrong from {} to {}, expected {}, actual {}, '{}' {}", result.checked,
                     result.wrong, result.first_bad, result.last_bad, result.expected, result.actual, result.diagnosis,
                     result.tells_cause);
}

std::size_t bytes_of(const Operation& operation, Count elements) {
  return static_cast<std::size_t>(elements) * size_of(operation.dtype);
}

// Inputs, poison and guards

TEST(DeviceVerifier, FillsEveryInputAsTheHostDoes) {
  const Devices devices;
  int filled = 0;
  for (const Dtype dtype : all_dtypes()) {
    std::vector<Op> ops = all_ops();
    ops.push_back(Op::none);
    for (const Op op : ops) {
      if (!op_exists(op, dtype)) continue;
      for (const Values values : {Values::exact, Values::random, Values::special}) {
        for (const int ranks : {1, 3, 600}) {
          const InputSpec spec{
              .dtype = dtype, .op = op, .ranks = ranks, .rank = ranks / 2, .seed = 7, .salt = 3, .values = values};
          for (const auto& [elements, misalignment] : {std::pair{2050, 0}, {517, 1}, {1, 3}, {0, 0}}) {
            const std::size_t bytes = static_cast<std::size_t>(elements) * size_of(dtype);
            Bytes expected(bytes), memory(bytes + 8, std::byte{0x5a});
            fill_input(expected, spec);
            devices.of(dtype == Dtype::f32 ? Op::sum : Op::min)
                .fill_input(std::span(memory).subspan(static_cast<std::size_t>(misalignment), bytes), spec);
            const auto begin = memory.begin() + misalignment;
            ASSERT_TRUE(std::equal(expected.begin(), expected.end(), begin))
                << to_string(dtype) << " " << to_string(op) << ", values " << static_cast<int>(values) << ", " << ranks
                << " ranks, " << elements << " elements at " << misalignment;
            ASSERT_TRUE(std::all_of(begin + static_cast<std::ptrdiff_t>(bytes), memory.end(),
                                    [](std::byte one) { return one == std::byte{0x5a}; }));
            ++filled;
          }
        }
      }
    }
  }
  EXPECT_EQ(filled, (6 * 10 + 6 * 7) * 3 * 3 * 4);
}

TEST(DeviceVerifier, PoisonsEachPartForItself) {
  const auto device = on_teams();
  for (const std::uint64_t salt : {0U, 1U, 77U}) {
    Bytes expected(4000, std::byte{1}), actual = expected;
    for (const auto& [first, bytes] : {std::pair{0, 64}, {67, 1}, {101, 23}, {200, 0}, {256, 3001}}) {
      const auto at = static_cast<std::size_t>(first), size = static_cast<std::size_t>(bytes);
      fill_poison(std::span(expected).subspan(at, size), salt);
      device->fill_poison(std::span(actual).subspan(at, size), salt);
    }
    EXPECT_EQ(expected, actual);
    const std::vector<std::span<std::byte>> parts{std::span(actual).subspan(1, 9), std::span(actual).subspan(64, 700)};
    for (const std::span<std::byte>& part : parts)
      fill_poison(std::span(expected).subspan(part.data() - actual.data(), part.size()), salt + 1);
    device->fill_poison(parts, salt + 1);
    EXPECT_EQ(expected, actual);
  }
}

TEST(DeviceVerifier, GuardsAreTheHostsAndEveryDamageIsFound) {
  const auto device = on_teams();
  for (const std::size_t bytes : {0U, 1U, 1000U, 9001U}) {
    GuardedBufferOptions options{.bytes = bytes, .misalignment = bytes % 7};
    options.allocator.kind = device.get();
    const GuardedBuffer buffer = GuardedBuffer::create(options).value();
    const auto start = static_cast<std::size_t>(buffer.payload().data() - buffer.memory().data());
    for (const auto& [first, end] : {std::pair{std::size_t{0}, start}, {start + bytes, buffer.memory().size()}}) {
      EXPECT_EQ(guard_damage(buffer.memory().subspan(first, end - first), first), std::nullopt) << bytes;
      for (const std::size_t place : {first, first + 1, (first + end) / 2, end - 2, end - 1}) {
        std::byte& damaged = const_cast<std::byte&>(buffer.memory()[place]);
        damaged ^= std::byte{0x10};
        const auto damage = buffer.check_guards();
        ASSERT_TRUE(damage.has_value()) << "byte " << place << " of " << buffer.memory().size();
        EXPECT_EQ(damage->offset, static_cast<std::ptrdiff_t>(place) - static_cast<std::ptrdiff_t>(start));
        EXPECT_EQ(damage->actual, damaged);
        damaged ^= std::byte{0x10};
        EXPECT_EQ(damage->expected, damaged);
      }
    }
    EXPECT_EQ(buffer.check_guards(), std::nullopt);
  }
}

TEST(DeviceVerifier, TheFirstOfSeveralDamagedGuardsIsTold) {
  const auto device = on_teams();
  GuardedBufferOptions options{.bytes = 100};
  options.allocator.kind = device.get();
  GuardedBuffer buffer = GuardedBuffer::create(options).value();
  std::byte* const payload = buffer.payload().data();
  for (const int place : {100, 170, -1, -300, 2000}) payload[place] ^= std::byte{1};
  EXPECT_EQ(buffer.check_guards()->offset, -300);
  buffer.restore_guards();
  EXPECT_EQ(buffer.check_guards(), std::nullopt);
}

// Verdicts

/// The outputs of all ranks, in memory at a distance that no element has as its alignment.
struct World {
  Operation operation;
  std::vector<Bytes> memory;
  std::size_t misalignment = 0;

  World(Operation what, std::size_t shift) : operation(std::move(what)), misalignment(shift) {
    for (int rank = 0; rank < operation.problem.ranks; ++rank) {
      const int blocks = output_blocks(operation.problem, rank);
      const Count elements = blocks == 0 ? 100 : operation.output_elements(rank);
      Bytes& bytes = memory.emplace_back(bytes_of(operation, elements) + misalignment);
      fill_poison(output(rank), operation.salt);
      for (int block = 0; block < blocks; ++block) {
        const Place place = operation.output_place(rank, block);
        fill_expected(
            std::span(bytes).subspan(misalignment + bytes_of(operation, place.first), bytes_of(operation, place.count)),
            operation, {.rank = rank, .block = block});
      }
    }
  }
  [[nodiscard]] std::span<std::byte> output(int rank) {
    return std::span(memory[static_cast<std::size_t>(rank)]).subspan(misalignment);
  }
  /// A rank that is neither the first nor, of many, the last.
  [[nodiscard]] int middle() const { return std::min(1, operation.problem.ranks - 1); }
  [[nodiscard]] std::vector<RankBuffer> outputs() {
    std::vector<RankBuffer> all;
    for (int rank = 0; rank < operation.problem.ranks; ++rank) all.push_back({.rank = rank, .bytes = output(rank)});
    return all;
  }
};

/// Something to put wrong in the outputs; whether the verdict must then be wrong is the host's to say.
struct Fault {
  const char* name;
  void (*make)(World& world);
};

/// The first element of the last block that a rank has, and the rank's last element.
void flip(World& world, int rank, Count element, unsigned bit) {
  const std::span<std::byte> output = world.output(rank);
  const std::size_t at = bytes_of(world.operation, element) + bit / 8;
  if (at < output.size()) output[at] ^= std::byte{1} << bit % 8;
}
Count elements_of(World& world, int rank) {
  return static_cast<Count>(world.output(rank).size() / size_of(world.operation.dtype));
}

const std::vector<Fault> kFaults{
    {"none", [](World&) {}},
    {"a bit of the first element", [](World& world) { flip(world, 0, 0, 0); }},
    {"a bit of the last element of the last rank",
     [](World& world) {
       const int last = world.operation.problem.ranks - 1;
       flip(world, last, elements_of(world, last) - 1, static_cast<unsigned>(8 * size_of(world.operation.dtype)) - 1);
     }},
    {"a bit in the middle on all ranks",
     [](World& world) {
       for (int rank = 0; rank < world.operation.problem.ranks; ++rank)
         flip(world, rank, elements_of(world, rank) / 2, 3);
     }},
    {"halves have changed places",
     [](World& world) {
       const std::span<std::byte> output = world.output(world.middle());
       const std::size_t half = bytes_of(world.operation, elements_of(world, world.middle()) / 2);
       std::swap_ranges(output.begin(), output.begin() + static_cast<std::ptrdiff_t>(half),
                        output.begin() + static_cast<std::ptrdiff_t>(half));
     }},
    {"nothing was written", [](World& world) { fill_poison(world.output(world.middle()), world.operation.salt); }},
    {"the last element was not written",
     [](World& world) {
       const std::size_t element = size_of(world.operation.dtype);
       const std::span<std::byte> output = world.output(0);
       Bytes poison(output.size());
       fill_poison(poison, world.operation.salt);
       if (output.size() >= element)
         std::copy(poison.end() - static_cast<std::ptrdiff_t>(element), poison.end(),
                   output.end() - static_cast<std::ptrdiff_t>(element));
     }},
    {"the previous data",
     [](World& world) {
       Operation before = world.operation;
       --before.salt;
       world.memory.back() = World(before, world.misalignment).memory.back();
     }},
    {"another root, or the data of another job",
     [](World& world) {
       Operation other = world.operation;
       const bool has_other_root = is_rooted(other.problem.collective) && other.blocks == nullptr;
       has_other_root ? void(other.problem.root = 0) : void(++other.seed);
       for (int rank = 0; rank < other.problem.ranks; ++rank) {
         const World with(other, world.misalignment);
         const Bytes& there = with.memory[static_cast<std::size_t>(rank)];
         Bytes& here = world.memory[static_cast<std::size_t>(rank)];
         std::copy_n(there.begin(), std::min(here.size(), there.size()), here.begin());
       }
     }},
    {"zeros", [](World& world) { std::ranges::fill(world.output(world.middle()), std::byte{0}); }},
};

/// The verdicts of the host and of the device on the same outputs; both must say the same.
int compare_verdicts(const Operation& operation, const Memory& device, std::size_t misalignment) {
  int wrong = 0;
  for (const Fault& fault : kFaults) {
    World world(operation, misalignment);
    fault.make(world);
    Oracle oracle(operation), other(operation);
    const auto by_host = host_memory().verify_outputs(oracle, world.outputs());
    const auto by_device = device.verify_outputs(other, world.outputs());
    EXPECT_EQ(by_host.size(), by_device.size());
    for (std::size_t i = 0; i < by_host.size() && i < by_device.size(); ++i) {
      EXPECT_EQ(said(by_host[i]), said(by_device[i]))
          << to_string(operation.problem.collective) << " " << name_of(operation) << " of " << operation.count
          << ", values " << static_cast<int>(operation.values) << ", rank " << i << ": " << fault.name;
      if (!by_host[i].is_ok()) ++wrong;
      if (fault.name == std::string("none")) {
        EXPECT_TRUE(by_host[i].is_ok());
      }
    }
  }
  return wrong;
}

Operation operation_of(Collective collective, Dtype dtype, Op op, Count count, int ranks = 4) {
  Operation operation{.problem = {.collective = collective, .ranks = ranks, .root = ranks > 2 ? 2 : 0},
                      .dtype = dtype,
                      .op = op,
                      .count = count,
                      .salt = 8};
  if (!is_rooted(collective)) operation.problem.root = 0;
  return operation;
}

TEST(DeviceVerifier, JudgesEveryDtypeAndOpAsTheHostDoes) {
  const Devices devices;
  int wrong = 0;
  for (const Operation& what : every_all_reduce()) {
    for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter, Collective::scan}) {
      if (!takes_op(collective, what.op)) continue;
      for (const Values values : {Values::exact, Values::special, Values::random}) {
        if (values != Values::exact && is_integer(what.dtype)) continue;
        Operation operation = operation_of(collective, what.dtype, what.op, 131);
        operation.values = values;
        wrong += compare_verdicts(operation, devices.of(what.op), collective == Collective::scan ? 1 : 0);
      }
    }
  }
  EXPECT_GT(wrong, 2000);
}

TEST(DeviceVerifier, JudgesEveryCollectiveAsTheHostDoes) {
  const Devices devices;
  int judged = 0;
  for (const Collective collective : every_collective()) {
    if (!has_data(collective)) continue;
    const Op op = is_reducing(collective) ? Op::sum : Op::none;
    for (const Dtype dtype : {Dtype::f32, Dtype::i8}) {
      for (const int ranks : {1, 2, 5}) {
        if (has_counts(collective)) {
          for (const std::string_view counts : {"ramp", "one-heavy", "zeros", "random"}) {
            Operation operation = operation_of(collective, dtype, op, 0, ranks);
            operation.blocks =
                std::make_shared<const CellBlocks>(operation.problem, counts_of_name(counts).value(), 6000);
            compare_verdicts(operation, devices.of(dtype == Dtype::f32 && ranks == 5 ? op : Op::min), 0);
            ++judged;
          }
          continue;
        }
        for (const Count count : {1, 300, 5000}) {
          if (ranks == 1 && (has_pairs(collective) || has_window(collective))) continue;
          compare_verdicts(operation_of(collective, dtype, op, count, ranks),
                           devices.of(dtype == Dtype::f32 && ranks == 5 ? op : Op::min), count == 300 ? 3 : 0);
          ++judged;
        }
      }
    }
  }
  EXPECT_GT(judged, 250);
}

TEST(DeviceVerifier, AMissingContributionIsNamed) {
  const auto device = on_teams();
  for (Operation operation : every_all_reduce()) {
    operation.count = 1000;
    const Bytes without = weighted(operation, {1}, 0);
    Oracle oracle(operation);
    const CheckResult by_device = device->verify_output(oracle, {.rank = 3, .bytes = without});
    EXPECT_EQ(said(by_device), said(verify(operation, 3, without))) << name_of(operation);
    if (operation.op == Op::sum && !is_coarse(operation)) {
      EXPECT_EQ(by_device.diagnosis, "rank 1's contribution is missing") << name_of(operation);
    }
  }
}

/// Runs on teams, and counts what it is asked for.
class CountingRunner final : public DeviceRunner {
 public:
  struct Seen {
    int fills = 0, poisons = 0, guards = 0, damages = 0, compares = 0;
    std::size_t reference = 0;  ///< elements whose expected value was asked for
    std::uint64_t adds_wrong = 0;
  };
  CountingRunner(Seen& seen) : seen_(seen) {}
  Status fill(const DeviceElements& elements, FillWork work) override {
    ++seen_.fills;
    return teams_->fill(elements, work);
  }
  Status fill_poison(std::span<const PoisonPart> parts, std::uint16_t word) override {
    ++seen_.poisons;
    return teams_->fill_poison(parts, word);
  }
  Status write_guards(GuardWork work) override {
    ++seen_.guards;
    return teams_->write_guards(work);
  }
  Result<std::uint64_t> find_damage(GuardWork work) override {
    ++seen_.damages;
    return teams_->find_damage(work);
  }
  Status start_triad(TriadWork work, void* stream) override { return teams_->start_triad(work, stream); }
  Status compare(const DeviceElements& elements, Comparing& comparing, std::span<CompareRecord> records) override {
    ++seen_.compares;
    for (const ComparePiece& piece : comparing.pieces) seen_.reference += static_cast<std::size_t>(piece.elements);
    TUTTI_RETURN_IF_ERROR(teams_->compare(elements, comparing, records));
    if (seen_.adds_wrong > 0) records[0] = {.wrong = seen_.adds_wrong, .first_bad = 5, .last_bad = 5};
    return {};
  }

 private:
  Seen& seen_;
  std::unique_ptr<DeviceRunner> teams_ = make_teams_runner({});
};

TEST(DeviceVerifier, OnePassJudgesAllRanksAndComputesWhatTheyShareOnce) {
  CountingRunner::Seen seen;
  const auto device = verified_host_memory(std::make_shared<DeviceVerifier>(std::make_unique<CountingRunner>(seen)));
  for (const auto& [collective, elements] : {std::pair{Collective::all_reduce, 9000},
                                             {Collective::all_gather, 8 * 9000},
                                             {Collective::broadcast, 9000},
                                             {Collective::reduce_scatter, 8 * 9000},
                                             {Collective::all_to_all, 8 * 8 * 9000}}) {
    seen = {};
    const Op op = is_reducing(collective) ? Op::sum : Op::none;
    World world(operation_of(collective, Dtype::f32, op, 9000, 8), 0);
    Oracle oracle(world.operation);
    for (const CheckResult& result : device->verify_outputs(oracle, world.outputs())) EXPECT_TRUE(result.is_ok());
    EXPECT_EQ(seen.compares, 1) << to_string(collective);
    EXPECT_EQ(seen.reference, static_cast<std::size_t>(elements)) << to_string(collective);
  }
}

TEST(DeviceVerifier, ADeviceThatCountsOtherwiseThanTheHostIsNotTrusted) {
  CountingRunner::Seen seen{.adds_wrong = 3};
  const auto device = verified_host_memory(std::make_shared<DeviceVerifier>(std::make_unique<CountingRunner>(seen)));
  World world(operation_of(Collective::all_reduce, Dtype::f32, Op::sum, 100, 2), 0);
  Oracle oracle(world.operation);
  const CheckResult output = device->verify_output(oracle, world.outputs()[0]);
  EXPECT_EQ(output.wrong, 3);
  EXPECT_THAT(output.diagnosis, HasSubstr("not to be trusted"));
  seen.adds_wrong = 1;  // as many as there are, but not where
  flip(world, 0, 7, 0);
  EXPECT_THAT(device->verify_output(oracle, world.outputs()[0]).diagnosis, HasSubstr("not to be trusted"));
  seen.adds_wrong = 3;
  const Bytes input = input_bytes(world.operation, 1, 400);
  const CheckResult unchanged = device->verify_input_unchanged(world.operation, {.rank = 1, .bytes = input});
  EXPECT_EQ(unchanged.wrong, 3);
  EXPECT_THAT(unchanged.diagnosis, HasSubstr("not to be trusted"));
}

TEST(DeviceVerifier, InputsAreLookedAtAsTheHostDoes) {
  const Devices devices;
  for (const Operation& what : every_all_reduce()) {
    for (const Values values : {Values::exact, Values::random, Values::special}) {
      Operation operation = what;
      operation.values = values;
      Bytes input = input_bytes(operation, 3, bytes_of(operation, 5000));
      for (const std::size_t place : {std::size_t{0}, input.size() / 3, input.size() - 1}) {
        const auto judge = [&](const Memory& memory) {
          return said(memory.verify_input_unchanged(operation, {.rank = 3, .bytes = input}));
        };
        ASSERT_EQ(judge(host_memory()), judge(devices.of(operation.op))) << name_of(operation);
        ASSERT_THAT(judge(devices.of(operation.op)), HasSubstr("5000 checked, 0 wrong")) << name_of(operation);
        input[place] ^= std::byte{4};
        ASSERT_EQ(judge(host_memory()), judge(devices.of(operation.op))) << name_of(operation);
        ASSERT_THAT(judge(devices.of(operation.op)), HasSubstr("5000 checked, 1 wrong")) << name_of(operation);
        input[place] ^= std::byte{4};
      }
    }
  }
}

TEST(DeviceVerifier, GapsBetweenBlocksAreLookedAtAsTheHostDoes) {
  const auto device = on_teams(1, 1);
  int wrong = 0;
  for (const Collective collective : {Collective::all_gather_v, Collective::all_to_all_v}) {
    for (const bool hold_input : {false, true}) {
      for (const Dtype dtype : {Dtype::f32, Dtype::i8, Dtype::f64}) {
        Operation operation = operation_of(collective, dtype, Op::none, 0);
        operation.blocks =
            std::make_shared<const CellBlocks>(operation.problem, counts_of_name("random").value(), 3000);
        Bytes output(bytes_of(operation, operation.output_elements(2)));
        hold_input ? fill_input(output, input_of(operation, 2)) : fill_poison(output, operation.salt);
        const auto judge = [&](const Memory& memory) {
          return memory.verify_gaps(operation, {.rank = 2, .bytes = output}, hold_input);
        };
        EXPECT_TRUE(judge(host_memory()).is_ok());
        EXPECT_EQ(said(judge(host_memory())), said(judge(*device)));
        for (std::size_t place = 0; place < output.size(); place += 1 + output.size() / 200) {
          output[place] ^= std::byte{1};
          EXPECT_EQ(said(judge(host_memory())), said(judge(*device))) << "byte " << place;
          wrong += judge(*device).is_ok() ? 0 : 1;
          output[place] ^= std::byte{1};
        }
      }
    }
  }
  EXPECT_GT(wrong, 0);
}

TEST(DeviceVerifier, AnIndexBeyond32BitsHasTheStreamOfItsUpperHalf) {
  const auto device = on_teams();
  constexpr Count kFar = (Count{1} << 32U) - 3;
  const Problem problem{.collective = Collective::reduce_scatter_v, .ranks = 2};
  Operation operation{.problem = problem, .dtype = Dtype::i32, .op = Op::sum, .salt = 8};
  Counts counts{.pattern = Pattern::file, .name = "file", .numbers = {kFar, 10}};
  operation.blocks = std::make_shared<const CellBlocks>(problem, counts, 0);
  ASSERT_EQ(operation.input_place(0, 1).first, kFar);
  Bytes output(40);
  fill_expected(output, operation, {.rank = 1, .block = 0});
  Oracle oracle(operation);
  EXPECT_EQ(said(device->verify_output(oracle, {.rank = 1, .bytes = output})), said(verify(operation, 1, output)));
  EXPECT_TRUE(verify(operation, 1, output).is_ok());
  output[39] ^= std::byte{1};
  EXPECT_EQ(said(device->verify_output(oracle, {.rank = 1, .bytes = output})), said(verify(operation, 1, output)));
  EXPECT_FALSE(verify(operation, 1, output).is_ok());
}

/// A GPU's NaN is positive, and as bfloat16 may be the poison.
TEST(DeviceVerifier, PoisonIsNoRightNan) {
  const auto device = on_teams();
  Operation operation = operation_of(Collective::all_reduce, Dtype::bf16, Op::sum, 300, 3);
  operation.values = Values::special;
  for (operation.salt = 1; poison_word(operation.salt) != 0x7fffU;) ++operation.salt;
  World world(operation, 0);
  fill_poison(world.output(1), operation.salt);
  Oracle oracle(operation);
  const auto results = device->verify_outputs(oracle, world.outputs());
  EXPECT_TRUE(results[0].is_ok());
  EXPECT_EQ(results[1].wrong, 300);
}

}  // namespace
}  // namespace tutti::harness::verify
