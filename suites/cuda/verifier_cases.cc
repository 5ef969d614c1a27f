// SPDX-License-Identifier: Apache-2.0
#include "suites/cuda/verifier_cases.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "harness/verify/buffers.h"
#include "harness/verify/device_verifier.h"

namespace tutti::cuda {
namespace {

using namespace harness::verify;
using harness::Values;

/// Memory that the device and the host reach at the same address.
class MappedMemory final : public VerifiedMemory {
 public:
  explicit MappedMemory(Device& device) : device_(device) {}
  [[nodiscard]] MemoryKind kind() const override { return MemoryKind::host; }
  [[nodiscard]] Result<void*> allocate(std::size_t bytes) override {
    TUTTI_ASSIGN_OR_RETURN(std::byte* const memory, device_.allocate_mapped(bytes));
    return static_cast<void*>(memory);
  }
  void release(void* pointer) override { device_.release(static_cast<std::byte*>(pointer)); }
  void write(std::byte* there, std::span<const std::byte> here) override {
    if (!here.empty()) std::memcpy(there, here.data(), here.size());
  }
  void read(std::span<std::byte> here, const std::byte* there) const override {
    if (!here.empty()) std::memcpy(here.data(), there, here.size());
  }
  [[nodiscard]] HostView view(std::span<const std::byte> there) const override { return HostView(there); }
  void flush(std::span<const std::byte> /*there*/) const override {}

 private:
  Device& device_;
};

/// One thing that should be as it is on the host.
void note(Compared& all, std::size_t elements, bool is_right, const std::string& what) {
  all.elements += static_cast<std::int64_t>(elements);
  if (is_right) return;
  ++all.wrong;
  if (all.first.empty()) all.first = what;
}

std::string said(const CheckResult& result) {
  return fmt::format("{} checked, {} wrong from {} to {}, expected {}, actual {}; {}", result.checked, result.wrong,
                     result.first_bad, result.last_bad, result.expected, result.actual, result.diagnosis);
}
std::string name_of(const Operation& operation) {
  return fmt::format("{} of {} {}, values {}", to_string(operation.problem.collective), to_string(operation.dtype),
                     to_string(operation.op), static_cast<int>(operation.values));
}

Compared fills(MappedMemory& memory, const Operation& operation, std::size_t elements) {
  Compared all;
  const std::size_t bytes = elements * size_of(operation.dtype);
  for (const int ranks : {operation.problem.ranks, 600}) {
    for (const std::size_t misalignment : {0, 1}) {
      const GuardedBuffer buffer =
          GuardedBuffer::create({.bytes = bytes, .misalignment = misalignment, .allocator = memory.allocator()})
              .value();
      InputSpec spec = input_of(operation, 1);
      spec.ranks = ranks;
      std::vector<std::byte> expected(bytes);
      fill_input(expected, spec);
      memory.fill_input(buffer.payload(), spec);
      note(all, elements, std::ranges::equal(expected, buffer.payload()), "input for " + name_of(operation));
      fill_poison(expected, operation.salt);
      memory.fill_poison(buffer.payload(), operation.salt);
      note(all, elements, std::ranges::equal(expected, buffer.payload()), "poison");
      note(all, 1, !buffer.check_guards(), "a guard is damaged after " + name_of(operation));
    }
  }
  return all;
}

/// Verdicts on the outputs of all ranks: right, with one bit wrong on one of them, and with nothing written.
Compared verdicts(MappedMemory& memory, const Operation& operation) {
  Compared all;
  std::vector<GuardedBuffer> buffers;
  std::vector<RankBuffer> outputs;
  const std::size_t element = size_of(operation.dtype);
  for (int rank = 0; rank < operation.problem.ranks; ++rank) {
    const std::size_t bytes = static_cast<std::size_t>(operation.output_elements(rank)) * element;
    buffers.push_back(GuardedBuffer::create({.bytes = bytes, .allocator = memory.allocator()}).value());
    for (int block = 0; block < output_blocks(operation.problem, rank); ++block) {
      const harness::Place place = operation.output_place(rank, block);
      fill_expected(buffers.back().payload().subspan(static_cast<std::size_t>(place.first) * element,
                                                     static_cast<std::size_t>(place.count) * element),
                    operation, {.rank = rank, .block = block});
    }
    outputs.push_back({.rank = rank, .bytes = buffers.back().payload()});
  }
  const auto compare = [&](const char* what) {
    Oracle here(operation), there(operation);
    const auto expected = host_memory().verify_outputs(here, outputs);
    const auto actual = memory.verify_outputs(there, outputs);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      note(all, static_cast<std::size_t>(expected[i].checked), said(expected[i]) == said(actual[i]),
           fmt::format("{}, {}, rank {}: {}, on the host {}", name_of(operation), what, i, said(actual[i]),
                       said(expected[i])));
    }
  };
  compare("right");
  const std::span<std::byte> one = buffers[1].payload();
  one[one.size() / 2] ^= std::byte{1};
  compare("one bit is wrong");
  memory.fill_poison(one, operation.salt);
  compare("nothing was written");
  return all;
}

Compared guards(MappedMemory& memory) {
  Compared all;
  GuardedBuffer buffer = GuardedBuffer::create({.bytes = 1001, .allocator = memory.allocator()}).value();
  for (const std::ptrdiff_t place : {-4096, -1, 1001, 2000, 5000}) {
    std::byte& damaged = buffer.payload().data()[place];
    damaged ^= std::byte{1};
    const auto damage = buffer.check_guards();
    note(all, 1, damage && damage->offset == place, fmt::format("a damaged guard at {} is not found", place));
    buffer.restore_guards();
    note(all, 1, !buffer.check_guards(), fmt::format("a guard at {} is not restored", place));
  }
  return all;
}

}  // namespace

Compared verifier_cases(Device& device, std::unique_ptr<DeviceRunner> runner, bool is_small) {
  MappedMemory memory(device);
  memory.set_verifier(std::make_shared<DeviceVerifier>(std::move(runner)));
  Compared all = guards(memory);
  const Count count = is_small ? 300 : 10'000;
  for (const Dtype dtype : all_dtypes()) {
    std::vector<Op> ops = all_ops();
    ops.push_back(Op::none);
    for (const Op op : ops) {
      if (!op_exists(op, dtype)) continue;
      for (const Values values : {Values::exact, Values::random, Values::special}) {
        Operation operation{.problem = {.collective = Collective::all_reduce, .ranks = 3},
                            .dtype = dtype,
                            .op = op,
                            .count = count,
                            .salt = 8,
                            .values = values};
        all += fills(memory, operation, static_cast<std::size_t>(count));
        if (op == Op::none) operation.problem.collective = Collective::all_to_all;
        all += verdicts(memory, operation);
        if (op == Op::none) continue;
        operation.problem.collective = Collective::reduce_scatter;
        all += verdicts(memory, operation);
      }
    }
  }
  return all;
}

}  // namespace tutti::cuda
