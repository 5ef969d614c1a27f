// SPDX-License-Identifier: Apache-2.0
// One rank of a test of the MPI shim, started by mpirun: loads the backend as tutti does, runs every call that it
// supports and verifies the results. Prints what is wrong and exits 1; rank 0 prints the library's description.
//   mpi_probe DIRECTORY BACKEND [RANKS]     RANKS: what the launcher is said to have started; default: what mpirun says
#include <algorithm>
#include <cstdlib>
#include <memory>
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

/// The blocks of a v form as backend.h has them.
struct Arrays {
  std::vector<std::int64_t> counts, displacements;
};

Arrays arrays_of(const Operation& operation, int rank, bool is_output) {
  Arrays arrays;
  for (int block = 0; block < operation.problem.ranks; ++block) {
    const Place place = is_output ? operation.output_place(rank, block) : operation.input_place(rank, block);
    arrays.counts.push_back(place.count);
    arrays.displacements.push_back(place.first);
  }
  return arrays;
}

/// A call's arguments, kept alive with it.
struct Arguments {
  Arguments(const Operation& operation, int rank)
      : collective(to_string(operation.problem.collective)),
        dtype(to_string(operation.dtype)),
        op(to_string(operation.op)) {
    call.collective = collective.c_str();
    call.dtype = dtype.c_str();
    call.op = op.c_str();
    call.root = operation.problem.root;
    call.count = operation.count;
    call.element_bytes = size_of(operation.dtype);
    if (operation.blocks == nullptr) return;
    const Collective form = operation.problem.collective;
    const int whose = is_rooted(form) ? operation.problem.root : rank;
    call.blocks = operation.problem.ranks;
    call.count = operation.blocks->own_count(rank);
    if (divides_input(form)) {
      input = arrays_of(operation, whose, false);
      call.send_counts = input.counts.data();
      call.send_displacements = input.displacements.data();
    }
    if (divides_output(form)) {
      output = arrays_of(operation, whose, true);
      call.recv_counts = output.counts.data();
      call.recv_displacements = output.displacements.data();
    }
  }
  std::string collective, dtype, op;
  Arrays input, output;
  TuttiBackendCall call{};
};

/// In place, elements from the output's first to the input's.
Count shift_of(const Operation& operation, int rank) {
  if (input_blocks(operation.problem, rank) == 0 || output_blocks(operation.problem, rank) == 0) return 0;
  const int block = in_place_block(operation.problem, rank);
  return operation.output_place(rank, std::max(0, block)).first -
         operation.input_place(rank, std::max(0, -block)).first;
}

/// Runs the operation three times with new data on the same prepared call.
void run_case(const Probe& probe, Operation operation, bool is_in_place) {
  const std::string name =
      fmt::format("{} {} {} root {} count {} in place {} on rank {}", to_string(operation.problem.collective),
                  to_string(operation.dtype), to_string(operation.op), operation.problem.root, operation.count,
                  is_in_place, probe.rank);
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
  Arguments arguments(operation, probe.rank);
  TuttiBackendCall& call = arguments.call;
  call.in_place = is_in_place ? 1 : 0;
  call.send = input_part.data();
  call.recv = output_part.data();
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
    Count written = has_output || is_in_place ? 0 : operation.count;
    for (int i = 0; i < output_blocks(operation.problem, probe.rank); ++i) {
      written += operation.output_place(probe.rank, i).count;
    }
    expect(output.is_ok() && output.checked == written, name + ": " + output.text());
    if (operation.blocks != nullptr && has_output) {
      const bool holds_input = is_in_place && input_part.size() == receive.payload().size();
      const CheckResult gaps = verify_gaps(operation, {.rank = probe.rank, .bytes = output_part}, holds_input);
      expect(gaps.is_ok(), name + ": " + gaps.text());
    }
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
  const auto handle = probe.backend.prepare(barrier);
  expect(handle.is_ok() && probe.backend.run(handle.value()).is_ok(), "barrier");
  probe.backend.release(handle.value());
}

/// Blocks of different lengths, empty ones, and gaps where MPI has displacements.
void run_v_forms(const Probe& probe) {
  for (const Count elements : {0, 1, 1000, 100000}) {
    for (const char* counts : {"ramp", "zeros", "random"}) {
      for (const Dtype dtype : {Dtype::f32, Dtype::i64, Dtype::bf16}) {
        for (const Collective form : every_collective()) {
          const bool is_last = is_rooted(form);
          const Problem problem{.collective = form, .ranks = probe.ranks, .root = is_last ? probe.ranks - 1 : 0};
          if (!has_counts(form)) continue;
          const auto blocks = std::make_shared<const CellBlocks>(problem, counts_of_name(counts).value(), elements);
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
  const Probe probe{.backend = backend.value(), .ranks = ranks, .rank = rank};
  run_all(probe);
  run_v_forms(probe);
  const Status closed = backend.value().close();
  expect(closed.is_ok(), closed.message());
  return g_mistakes == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tutti::harness

int main(int count, char** arguments) { return tutti::harness::run_probe({arguments, arguments + count}); }
