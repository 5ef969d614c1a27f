// SPDX-License-Identifier: Apache-2.0
// One rank of a test of a reference's backend, started by mpirun, or by probe_ranks.py as mpirun would. It loads the
// backend as tutti does, runs and posts every call that it supports, on the world and on groups, and verifies the
// results. Prints what is wrong and exits 1; rank 0 prints the library's description. PROBE_DIRECTORY: where the ranks
// meet, if they need to. PROBE_MEMORY=cuda: buffers lie on a GPU, and calls are posted on a stream; then there are
// fewer.
//   backend_probe DIRECTORY BACKEND [RANKS]   RANKS: what the launcher is said to have started; default: what mpirun
//   says
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "harness/backends/loader.h"
#include "harness/backends/reference_call.h"
#include "harness/verify/buffers.h"
#include "harness/verify/check.h"
#include "harness/verify/cuda_memory.h"

namespace tutti::harness {
namespace {

int g_mistakes = 0;
Memory* g_memory = &host_memory();
std::uint64_t g_repetitions = 3;

void expect(bool holds, const std::string& what) {
  if (holds) return;
  ++g_mistakes;
  fmt::print("WRONG: {}\n", what);
}

/// One rank's calls on a group.
struct Probe {
  const LoadedBackend& backend;
  TuttiBackendGroup group;
  bool is_asynchronous = false;
  int ranks = group.ranks;
  int rank = group.rank;
};

/// Runs the call, or posts it and completes it by one of the two ways.
Status perform(const Probe& probe, LoadedBackend::Handle handle, bool waits) {
  if (!probe.is_asynchronous) return probe.backend.run(handle);
  TUTTI_RETURN_IF_ERROR(probe.backend.post(handle));
  if (waits) return probe.backend.wait(handle);
  for (bool is_complete = false; !is_complete;) {
    TUTTI_ASSIGN_OR_RETURN(is_complete, probe.backend.test(handle));
  }
  return {};
}

GuardedBuffer buffer_of(std::size_t bytes, std::size_t misalignment = 4) {
  auto buffer =
      GuardedBuffer::create({.bytes = bytes, .misalignment = misalignment, .allocator = g_memory->allocator()});
  TUTTI_ASSERT(buffer.is_ok(), "{}", buffer.status().message());
  return std::move(buffer).value();
}

/// A call on buffers of this memory.
void set_memory(TuttiBackendCall& call) {
  call.memory = static_cast<std::int32_t>(g_memory->kind());
  call.stream = g_memory->stream();
}

/// In place, elements from the output's first to the input's.
Count shift_of(const Operation& operation, int rank) {
  if (input_blocks(operation.problem, rank) == 0 || output_blocks(operation.problem, rank) == 0) return 0;
  const int block = in_place_block(operation.problem, rank);
  return operation.output_place(rank, std::max(0, block)).first -
         operation.input_place(rank, std::max(0, -block)).first;
}

/// Of a v form each rank has blocks of its own: unless all of them fit, no rank may call.
Status supported_by_all(const Probe& probe, const TuttiBackendCall& call, const Operation& operation,
                        bool is_in_place) {
  for (int each = 0; each < probe.ranks; ++each) {
    ReferenceCall made(operation, each, is_in_place);
    made.call.group = call.group;
    made.call.asynchronous = call.asynchronous;
    set_memory(made.call);
    TUTTI_RETURN_IF_ERROR(probe.backend.supports(made.call));
  }
  return {};
}

/// Runs the operation several times with new data on the same prepared call.
void run_case(const Probe& probe, Operation operation, bool is_in_place) {
  const std::string name =
      fmt::format("{}{} {} {} root {} count {} in place {} on rank {} of {}", probe.is_asynchronous ? "posted " : "",
                  to_string(operation.problem.collective), to_string(operation.dtype), to_string(operation.op),
                  operation.problem.root, operation.count, is_in_place, probe.rank, probe.ranks);
  const std::size_t element_bytes = size_of(operation.dtype);
  const Count inputs = operation.input_elements(probe.rank), outputs = operation.output_elements(probe.rank);
  const bool has_output = output_blocks(operation.problem, probe.rank) > 0;
  const auto bytes_of = [&](Count elements) { return static_cast<std::size_t>(elements) * element_bytes; };
  const GuardedBuffer send = buffer_of(bytes_of(inputs));
  // In place it holds both; a rank without output has a block that must stay as it is.
  const Count spare = has_output ? outputs : operation.count;
  const GuardedBuffer receive = buffer_of(bytes_of(is_in_place ? std::max(inputs, outputs) : spare));
  const Count shift = shift_of(operation, probe.rank);
  const auto part = [&](Count first, Count elements) {
    return is_in_place ? receive.payload().subspan(bytes_of(std::max<Count>(0, first)), bytes_of(elements))
                       : receive.payload();
  };
  const std::span<std::byte> input_part = is_in_place ? part(shift, inputs) : send.payload();
  const std::span<std::byte> output_part = part(-shift, outputs);
  ReferenceCall made(operation, probe.rank, is_in_place);
  TuttiBackendCall& call = made.call;
  call.group = probe.group.handle;
  call.asynchronous = probe.is_asynchronous ? 1 : 0;
  set_memory(call);
  call.send = input_part.data();
  call.recv = output_part.data();
  if (const Status supported = supported_by_all(probe, call, operation, is_in_place); !supported.is_ok()) {
    if (probe.rank == 0 && operation.count == 1 && !probe.is_asynchronous)
      fmt::print("skipped: {}: {}\n", name, supported.message());
    return;
  }
  const auto handle = probe.backend.prepare(call);
  expect(handle.is_ok(), name + handle.status().message());
  for (operation.salt = 1; operation.salt <= g_repetitions; ++operation.salt) {
    g_memory->fill_input(send.payload(), input_of(operation, probe.rank));
    g_memory->fill_poison(receive.payload(), operation.salt);
    if (is_in_place) g_memory->fill_input(input_part, input_of(operation, probe.rank));
    const Status status = perform(probe, handle.value(), operation.salt == 2);
    expect(status.is_ok(), name + ": " + status.message());
    Oracle oracle(operation);
    const CheckResult output = g_memory->verify_output(oracle, {.rank = probe.rank, .bytes = output_part});
    Count written = has_output || is_in_place ? 0 : operation.count;
    for (int i = 0; i < output_blocks(operation.problem, probe.rank); ++i) {
      written += operation.output_place(probe.rank, i).count;
    }
    expect(output.is_ok() && output.checked == written, name + ": " + output.text());
    if (operation.blocks != nullptr && has_output) {
      const bool holds_input = is_in_place && input_part.size() == receive.payload().size();
      const HostView view = g_memory->view(output_part);
      const CheckResult gaps = verify_gaps(operation, {.rank = probe.rank, .bytes = view.bytes()}, holds_input);
      expect(gaps.is_ok(), name + ": " + gaps.text());
    }
    const CheckResult input =
        g_memory->verify_input_unchanged(operation, {.rank = probe.rank, .bytes = send.payload()});
    expect(input.is_ok(), name + ": " + input.text());
    expect(!send.check_guards() && !receive.check_guards(), name + ": a guard is damaged");
  }
  probe.backend.release(handle.value());
}

struct Extent {
  std::vector<Count> counts;
  std::vector<Dtype> dtypes;
};

void run_all(const Probe& probe, const Extent& extent) {
  for (const Count count : extent.counts) {
    for (const Dtype dtype : extent.dtypes) {
      for (const bool is_in_place : {false, true}) {
        const auto run = [&](Collective collective, Op op, int root) {
          const Pairing pairing{.window = has_window(collective) ? 5 : 1};
          run_case(probe,
                   {.problem = {.collective = collective, .ranks = probe.ranks, .root = root, .pairing = pairing},
                    .dtype = dtype,
                    .op = op,
                    .count = count},
                   is_in_place);
        };
        for (const Collective collective : every_collective()) {
          if (!has_data(collective) || has_counts(collective)) continue;
          for (const Op op : is_reducing(collective) ? all_ops() : std::vector{Op::none}) {
            run(collective, op, 0);
            if (is_rooted(collective)) run(collective, op, probe.ranks - 1);
          }
        }
      }
    }
  }
  TuttiBackendCall barrier{};
  barrier.collective = "barrier";
  barrier.group = probe.group.handle;
  barrier.asynchronous = probe.is_asynchronous ? 1 : 0;
  set_memory(barrier);
  const auto handle = probe.backend.prepare(barrier);
  expect(handle.is_ok() && perform(probe, handle.value(), true).is_ok(), "barrier");
  probe.backend.release(handle.value());
}

/// A call of one number.
LoadedBackend::Handle posted(const Probe& probe, const char* collective, int root, const std::byte* send,
                             std::byte* receive) {
  TuttiBackendCall call{};
  call.collective = collective;
  call.dtype = "int64";
  call.op = "sum";
  call.root = root;
  call.count = 1;
  call.element_bytes = sizeof(std::int64_t);
  call.send = send;
  call.recv = receive;
  call.group = probe.group.handle;
  call.asynchronous = 1;
  set_memory(call);
  const auto handle = probe.backend.prepare(call);
  expect(handle.is_ok() && probe.backend.post(handle.value()).is_ok(), fmt::format("posting {}", collective));
  return handle.value();
}

/// Numbers that calls read and write.
class Numbers {
 public:
  explicit Numbers(std::vector<std::int64_t> values)
      : values_(std::move(values)), buffer_(buffer_of(bytes().size(), alignof(std::int64_t))) {
    g_memory->write(buffer_.payload().data(), bytes());
  }
  [[nodiscard]] std::byte* at(std::size_t i) const { return buffer_.payload().data() + i * sizeof(std::int64_t); }
  [[nodiscard]] const std::vector<std::int64_t>& read() {
    g_memory->read(bytes(), buffer_.payload().data());
    return values_;
  }

 private:
  [[nodiscard]] std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(values_)); }

  std::vector<std::int64_t> values_;
  GuardedBuffer buffer_;
};

/// Sums and messages to the next rank, all in flight at once, completed from the last to the first. To a library that
/// has groups they are one, since on one stream a send would wait for ever.
void run_in_flight(const Probe& probe) {
  constexpr std::int64_t kEach = 8;
  const int ranks = probe.ranks;
  const int next = (probe.rank + 1) % ranks, previous = (probe.rank + ranks - 1) % ranks;
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < kEach; ++i) values.push_back(100 * probe.rank + i);
  const Numbers inputs(values);
  const std::vector<std::int64_t> zeros(kEach);
  Numbers sums(zeros), received(zeros);
  std::vector<LoadedBackend::Handle> handles;
  expect(probe.backend.begin_group().is_ok(), "beginning a group of calls");
  for (std::size_t i = 0; i < kEach; ++i) {
    handles.push_back(posted(probe, "send", next, inputs.at(i), nullptr));
    handles.push_back(posted(probe, "all_reduce", 0, inputs.at(i), sums.at(i)));
    handles.push_back(posted(probe, "recv", previous, nullptr, received.at(i)));
  }
  expect(probe.backend.end_group().is_ok(), "ending a group of calls");
  for (; !handles.empty(); handles.pop_back()) {
    expect(probe.backend.wait(handles.back()).is_ok(), "waiting");
    probe.backend.release(handles.back());
  }
  const auto& got_sums = sums.read();
  const auto& got = received.read();
  for (std::int64_t i = 0; i < kEach; ++i) {
    const auto at = static_cast<std::size_t>(i);
    expect(got_sums[at] == 100 * ranks * (ranks - 1) / 2 + ranks * i, fmt::format("sum {} is {}", i, got_sums[at]));
    expect(got[at] == 100 * previous + i, fmt::format("message {} is {}", i, got[at]));
  }
}

/// Everything, both ways, on a group that is then freed.
void run_group(const Probe& world, const Result<TuttiBackendGroup>& made, int ranks, int rank) {
  expect(made.is_ok(), made.status().message());
  const TuttiBackendGroup& group = made.value();
  expect(group.ranks == ranks && group.rank == rank,
         fmt::format("rank {} of {} in a group, not {} of {}", group.rank, group.ranks, rank, ranks));
  for (const bool is_asynchronous : {false, true}) {
    std::vector dtypes{Dtype::f32, Dtype::bf16};
    if (g_memory != &host_memory()) dtypes = {is_asynchronous ? Dtype::f32 : Dtype::bf16};
    run_all({.backend = world.backend, .group = group, .is_asynchronous = is_asynchronous},
            {.counts = {17}, .dtypes = dtypes});
  }
  run_in_flight({.backend = world.backend, .group = group});
  expect(world.backend.free_group(group).is_ok(), "freeing a group");
}

void run_groups(const Probe& world) {
  const int ranks = world.ranks, rank = world.rank;
  const auto split = [&](void* parent, int colour, int key) { return world.backend.split(parent, colour, key); };
  const auto reversed = split(nullptr, 3, -rank);
  expect(reversed.is_ok(), reversed.status().message());
  run_group(world, split(reversed.value().handle, 0, rank), ranks, rank);
  run_group(world, reversed, ranks, ranks - 1 - rank);
  run_group(world, split(nullptr, rank % 2, 0), (ranks + 1 - rank % 2) / 2, rank / 2);
  const auto last = split(nullptr, rank == ranks - 1 ? 0 : -1, 0);
  expect(last.is_ok() && last.value().ranks == (rank == ranks - 1 ? 1 : 0), "a group of the last rank");
  if (last.value().ranks > 0) run_group(world, last, 1, 0);
}

/// Blocks of different lengths, empty ones, and gaps where the library has displacements.
void run_v_forms(const Probe& probe, const Extent& extent) {
  for (const Count elements : extent.counts) {
    for (const char* pattern : {"ramp", "zeros", "random"}) {
      for (const Dtype dtype : extent.dtypes) {
        for (const Collective form : every_collective()) {
          const bool is_last = is_rooted(form);
          const Problem problem{.collective = form, .ranks = probe.ranks, .root = is_last ? probe.ranks - 1 : 0};
          if (!has_counts(form)) continue;
          const auto blocks = std::make_shared<const CellBlocks>(problem, counts_of_name(pattern).value(), elements);
          for (const bool is_in_place : {false, true}) {
            run_case(probe,
                     {.problem = problem,
                      .dtype = dtype,
                      .op = is_reducing(form) ? Op::max : Op::none,
                      .count = elements,
                      .blocks = blocks},
                     is_in_place);
          }
        }
      }
    }
  }
}

/// By files of the directory in which the ranks meet.
struct Exchange {
  std::filesystem::path directory;
  int rank = 0;
  int ranks = 1;
  int number = 0;

  static int exchange(void* context, const void* mine, void* all, std::size_t bytes) {
    Exchange& self = *static_cast<Exchange*>(context);
    const auto file = [&](int of, const char* ending) {
      return self.directory / fmt::format("exchange-{}-{}{}", self.number, of, ending);
    };
    std::ofstream(file(self.rank, ".part"), std::ios::binary)
        .write(static_cast<const char*>(mine), std::streamsize(bytes));
    std::filesystem::rename(file(self.rank, ".part"), file(self.rank, ""));
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    for (int of = 0; of < self.ranks; ++of) {
      while (!std::filesystem::exists(file(of, ""))) {
        if (std::chrono::steady_clock::now() > end) return 1;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      auto* const to = static_cast<char*>(all) + static_cast<std::size_t>(of) * bytes;
      std::ifstream(file(of, ""), std::ios::binary).read(to, std::streamsize(bytes));
    }
    ++self.number;
    return 0;
  }
};

int variable(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

/// Every call that is run, and then every call that is posted.
void run(Probe& probe) {
  if (g_memory != &host_memory()) {
    run_all(probe, {.counts = {1000}, .dtypes = all_dtypes()});
    run_all(probe, {.counts = {0, 1, 30000}, .dtypes = {Dtype::f32}});
    run_v_forms(probe, {.counts = {0, 1, 30000}, .dtypes = {Dtype::f32}});
    probe.is_asynchronous = true;
    run_all(probe, {.counts = {0, 1000}, .dtypes = {Dtype::f32}});
    run_v_forms(probe, {.counts = {1000}, .dtypes = {Dtype::f32}});
    return;
  }
  const std::vector some{Dtype::f32, Dtype::i64, Dtype::bf16};
  run_all(probe, {.counts = {0, 1, 1000, 100000}, .dtypes = all_dtypes()});
  run_v_forms(probe, {.counts = {0, 1, 1000, 100000}, .dtypes = some});
  probe.is_asynchronous = true;
  run_all(probe, {.counts = {0, 1000}, .dtypes = some});
  run_v_forms(probe, {.counts = {0, 1000}, .dtypes = some});
}

/// What a rank is told that has lost the others.
int be_left(const Probe& probe) {
  if (probe.rank > 0) std::_Exit(0);
  const Numbers numbers({1});
  const auto handle = posted(probe, "all_reduce", 0, numbers.at(0), numbers.at(0));
  const Status status = probe.backend.wait(handle);
  fmt::print("{}\n", status.is_ok() ? "it is not told" : status.message());
  std::fflush(stdout);
  std::_Exit(status.is_ok() ? 1 : 0);  // the call is on the stream for ever
}

int run_probe(const std::vector<std::string>& arguments) {
  const std::vector<std::string> directories{arguments.at(1)};
  const auto backend = LoadedBackend::load(arguments.at(2), directories);
  if (!backend.is_ok()) {
    fmt::print("{}\n", backend.status().message());
    return 3;
  }
  const int started = variable("OMPI_COMM_WORLD_SIZE", variable("PMI_SIZE", 1));
  const int rank = variable("OMPI_COMM_WORLD_RANK", variable("PMI_RANK", 0));
  const int ranks = arguments.size() > 3 ? std::stoi(arguments[3]) : started;
  const char* const directory = std::getenv("PROBE_DIRECTORY");
  Exchange exchange{.directory = directory == nullptr ? "" : directory, .rank = rank, .ranks = ranks};
  const TuttiBackendJoin join{.local_ranks = 1,
                              .devices = nullptr,
                              .host = 0,
                              .rank_on_host = rank,
                              .exchange = directory == nullptr ? nullptr : Exchange::exchange,
                              .context = &exchange,
                              .address = nullptr};
  std::unique_ptr<Memory> device;
  const char* const kind = std::getenv("PROBE_MEMORY");
  if (kind != nullptr && std::string(kind) == "cuda") {
    const cuda::FoundRuntime found = cuda::find_runtime(std::getenv);
    if (found.runtime == nullptr) {
      fmt::print("{}\n", found.why);
      return 3;
    }
    auto memory = CudaMemory::open(found.runtime, rank);
    if (!memory.is_ok()) {
      fmt::print("{}\n", memory.status().message());
      return 3;
    }
    device = std::move(memory).value();
    g_memory = device.get();
    g_repetitions = 2;  // which wait in one way and in the other
  }
  if (const Status status = backend.value().open({.ranks = ranks, .rank = rank}, join); !status.is_ok()) {
    fmt::print("{}\n", status.message());
    const Status closed = backend.value().close();
    return closed.is_ok() ? 3 : 1;
  }
  if (rank == 0) fmt::print("{}\n", backend.value().describe().value());
  const TuttiBackendGroup world{.ranks = ranks, .rank = rank, .handle = nullptr};
  Probe probe{.backend = backend.value(), .group = world};
  if (std::getenv("PROBE_LEAVES") != nullptr) return be_left(probe);
  run(probe);
  run_in_flight(probe);
  run_groups(probe);
  const Status closed = backend.value().close();
  expect(closed.is_ok(), closed.message());
  return g_mistakes == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tutti::harness

int main(int count, char** arguments) { return tutti::harness::run_probe({arguments, arguments + count}); }
