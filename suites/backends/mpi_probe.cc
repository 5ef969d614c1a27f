// SPDX-License-Identifier: Apache-2.0
// One rank of a test of the MPI shim, started by mpirun: loads the backend as tutti does, runs every call that it
// supports and verifies the results. Prints what is wrong and exits 1; rank 0 prints the library's description.
//   mpi_probe DIRECTORY BACKEND [RANKS]     RANKS: what the launcher is said to have started; default: what mpirun says
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "harness/backends/loader.h"
#include "harness/verify/buffers.h"
#include "harness/verify/check.h"

namespace tutti::harness {
namespace {

int g_mistakes = 0;

void expect(bool holds, const std::string& what) {
  if (holds) return;
  ++g_mistakes;
  fmt::print("WRONG: {}\n", what);
}

struct Probe {
  const LoadedBackend& backend;
  int ranks;
  int rank;
};

GuardedBuffer buffer_of(std::size_t bytes) {
  auto buffer = GuardedBuffer::create({.bytes = bytes, .misalignment = 4});
  TUTTI_ASSERT(buffer.is_ok(), "{}", buffer.status().message());
  return std::move(buffer).value();
}

/// Runs the operation three times with new data on the same prepared call.
void run_case(const Probe& probe, Operation operation, bool is_in_place) {
  const std::string name =
      fmt::format("{} {} {} root {} count {} in place {} on rank {}", to_string(operation.problem.collective),
                  to_string(operation.dtype), to_string(operation.op), operation.problem.root, operation.count,
                  is_in_place, probe.rank);
  const int inputs = input_blocks(operation.problem, probe.rank);
  const int outputs = output_blocks(operation.problem, probe.rank);
  const auto block_bytes = static_cast<std::size_t>(operation.count) * size_of(operation.dtype);
  const auto bytes_of = [&](int blocks) { return static_cast<std::size_t>(blocks) * block_bytes; };
  const GuardedBuffer send = buffer_of(bytes_of(inputs));
  // In place it holds both; a rank without output has a block that must stay as it is.
  const GuardedBuffer receive = buffer_of(bytes_of(is_in_place ? std::max(inputs, outputs) : std::max(1, outputs)));
  const int shift = in_place_block(operation.problem, probe.rank);
  const auto part = [&](int first, int blocks) {
    return is_in_place ? receive.payload().subspan(bytes_of(std::max(0, first)), bytes_of(blocks)) : receive.payload();
  };
  const std::span<std::byte> input_part = is_in_place ? part(shift, inputs) : send.payload();
  const std::span<std::byte> output_part = part(-shift, outputs);
  const std::string dtype(to_string(operation.dtype));
  const std::string op(to_string(operation.op));
  const std::string collective(to_string(operation.problem.collective));
  const TuttiBackendCall call{.collective = collective.c_str(),
                              .dtype = dtype.c_str(),
                              .op = op.c_str(),
                              .root = operation.problem.root,
                              .in_place = is_in_place ? 1 : 0,
                              .count = operation.count,
                              .element_bytes = size_of(operation.dtype),
                              .send = input_part.data(),
                              .recv = output_part.data()};
  if (const Status supported = probe.backend.supports(call); !supported.is_ok()) {
    if (probe.rank == 0 && operation.count == 1) fmt::print("skipped: {}: {}\n", name, supported.message());
    return;
  }
  const auto handle = probe.backend.prepare(call);
  expect(handle.is_ok(), name + handle.status().message());
  for (operation.salt = 1; operation.salt <= 3; ++operation.salt) {
    fill_input(send.payload(), input_of(operation, probe.rank));
    fill_poison(receive.payload(), operation.salt);
    if (is_in_place) fill_input(input_part, input_of(operation, probe.rank));
    const Status status = probe.backend.run(handle.value());
    expect(status.is_ok(), name + ": " + status.message());
    Oracle oracle(operation);
    const CheckResult output = verify_output(oracle, {.rank = probe.rank, .bytes = output_part});
    const Count written = outputs > 0 ? outputs * operation.count : is_in_place ? 0 : operation.count;
    expect(output.is_ok() && output.checked == written, name + ": " + output.text());
    const CheckResult input = verify_input_unchanged(operation, {.rank = probe.rank, .bytes = send.payload()});
    expect(input.is_ok(), name + ": " + input.text());
    expect(!send.check_guards() && !receive.check_guards(), name + ": a guard is damaged");
  }
  probe.backend.release(handle.value());
}

void run_all(const Probe& probe) {
  for (const Count count : {0, 1, 1000, 100000}) {
    for (const Dtype dtype : all_dtypes()) {
      for (const bool is_in_place : {false, true}) {
        const auto run = [&](Collective collective, Op op, int root) {
          run_case(probe,
                   {.problem = {.collective = collective, .ranks = probe.ranks, .root = root},
                    .dtype = dtype,
                    .op = op,
                    .count = count},
                   is_in_place);
        };
        for (const Collective collective : every_collective()) {
          if (!has_data(collective)) continue;
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
  const auto handle = probe.backend.prepare(barrier);
  expect(handle.is_ok() && probe.backend.run(handle.value()).is_ok(), "barrier");
  probe.backend.release(handle.value());
}

int variable(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
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
  if (const Status status = backend.value().open({.ranks = ranks, .rank = rank}); !status.is_ok()) {
    fmt::print("{}\n", status.message());
    const Status closed = backend.value().close();
    return closed.is_ok() ? 3 : 1;
  }
  if (rank == 0) fmt::print("{}\n", backend.value().describe().value());
  run_all({.backend = backend.value(), .ranks = ranks, .rank = rank});
  const Status closed = backend.value().close();
  expect(closed.is_ok(), closed.message());
  return g_mistakes == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tutti::harness

int main(int count, char** arguments) { return tutti::harness::run_probe({arguments, arguments + count}); }
