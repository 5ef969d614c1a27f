// SPDX-License-Identifier: Apache-2.0
#include "harness/explain/real_run.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>

#include "harness/verify/accumulation.h"
#include "impl/communicator/communicator.h"
#include "impl/transports/transport.h"

namespace tutti::harness::explain {
namespace {

constexpr std::byte kUnwritten{0xa5};
constexpr std::chrono::seconds kDeadline{20};

using Bytes = std::vector<std::byte>;

template <class T>
T element_of(double number) {
  if constexpr (std::is_arithmetic_v<T>) return static_cast<T>(number);
  if constexpr (!std::is_arithmetic_v<T>) return T::from_float(static_cast<float>(number));
}
template <class T>
double number_of(T element) {
  if constexpr (std::is_arithmetic_v<T>) return static_cast<double>(element);
  if constexpr (!std::is_arithmetic_v<T>) return element.to_float();
}

Bytes bytes_of(const Numbers& numbers, const Example& example) {
  return visit_dtype(example.dtype, [&]<class T>(std::type_identity<T>) {
    Bytes bytes(numbers.size() * static_cast<std::size_t>(example.scale) * sizeof(T), kUnwritten);
    for (std::size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
      const auto& number = numbers[i / static_cast<std::size_t>(example.scale)];
      if (!number) continue;  // a gap
      const T element = element_of<T>(*number);
      std::memcpy(bytes.data() + i * sizeof(T), &element, sizeof(T));
    }
    return bytes;
  });
}

Numbers numbers_of(const Bytes& bytes, const Example& example) {
  return visit_dtype(example.dtype, [&]<class T>(std::type_identity<T>) {
    const std::size_t line = static_cast<std::size_t>(example.scale) * sizeof(T);
    Numbers numbers;
    for (std::size_t at = 0; at < bytes.size(); at += line) {
      const auto* first = bytes.data() + at;
      T element;
      std::memcpy(&element, first, sizeof(T));
      const bool is_unwritten = std::all_of(first, first + line, [](std::byte byte) { return byte == kUnwritten; });
      numbers.push_back(is_unwritten ? std::nullopt : std::optional(number_of(element)));
    }
    return numbers;
  });
}

/// Elements before a block.
Count first_of(const Example& example, BufferSide side, int rank, int block) {
  return example.place(side, rank, block * example.units).first * example.scale;
}
/// Elements of an output block.
Count length_of(const Example& example, int rank, int block) {
  return example.lengths.empty() ? example.count()
                                 : example.place(BufferSide::output, rank, block).count * example.scale;
}

/// What must stand at element `at` of output block `block` of `rank`.
template <class T>
T expected_at(const Example& example, const std::vector<Bytes>& inputs, int rank, int block, Count at) {
  const Origin origin = origin_of(example.problem, rank, block);
  const auto load = [&](int from) {
    T element;
    const auto index = static_cast<std::size_t>(first_of(example, BufferSide::input, from, origin.block) + at);
    std::memcpy(&element, inputs[static_cast<std::size_t>(from)].data() + index * sizeof(T), sizeof(T));
    return element;
  };
  if (!is_reducing(example.problem.collective)) return load(origin.first);
  const auto term = [&](int from) {
    return example.factors.empty() ? load(from) : scaled(load(from), example.factors[static_cast<std::size_t>(from)]);
  };
  auto total = Accumulation<T>::load(term(origin.first));
  for (int from = origin.first + 1; from <= origin.last; ++from) total = combine<T>(total, term(from), example.op);
  return finish<T>(total, example.op, example.problem.ranks);
}

void compare(RealRun& run, const Example& example, const std::vector<Bytes>& inputs, const Bytes& output, int rank) {
  Bytes gaps = output;  // what is left when the blocks are taken out
  visit_dtype(example.dtype, [&]<class T>(std::type_identity<T>) {
    for (int block = 0; block < output_blocks(example.problem, rank); ++block) {
      const Count first = first_of(example, BufferSide::output, rank, block);
      for (Count i = 0; i < length_of(example, rank, block); ++i) {
        const std::size_t at = static_cast<std::size_t>(first + i) * sizeof(T);
        T actual;
        std::memcpy(&actual, output.data() + at, sizeof(T));
        std::fill_n(gaps.begin() + static_cast<std::ptrdiff_t>(at), sizeof(T), kUnwritten);
        const T expected = expected_at<T>(example, inputs, rank, block, i);
        ++run.checked;
        if (std::memcmp(&actual, &expected, sizeof(T)) == 0) continue;
        ++run.wrong;
        if (!run.first_wrong.empty()) continue;
        run.first_wrong = fmt::format("element {} of rank {}'s output is {}, and should be {}", first + i, rank,
                                      number_of(actual), number_of(expected));
      }
    }
  });
  if (std::ranges::count(gaps, kUnwritten) == static_cast<std::ptrdiff_t>(gaps.size())) return;
  ++run.wrong;
  if (run.first_wrong.empty()) run.first_wrong = fmt::format("a gap in the output of rank {} was written", rank);
}

/// Where the blocks of a rank of a v form lie, in bytes.
BlockTable blocks_of(const Example& example, int rank) {
  const auto element = static_cast<std::int64_t>(size_of(example.dtype)) * example.scale;
  BlockTable table;
  for (const BufferSide side : {BufferSide::input, BufferSide::output}) {
    for (int block = 0; block < example.units_in(side, rank); ++block) {
      const Stretch place = example.place(side, rank, block);
      (side == BufferSide::input ? table.input : table.output)
          .push_back({.offset = place.first * element, .bytes = place.count * element});
    }
  }
  if (divides_both(example.problem.collective)) return table;
  for (const int length : example.lengths) table.shared.push_back(length * element);
  return table;
}

/// Runs `body` on every rank, as threads. Errors: the first that explains more than "another rank failed".
Status on_threads(int ranks, bool proves, const std::function<Status(Communicator&)>& body) {
  const Transport& transport = best_transport(RanksIn::one_process);
  TUTTI_ASSIGN_OR_RETURN(const auto domain, transport.open(transport.shape(ranks, 1, 0), {}));
  std::mutex mutex;
  Status first;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      auto communicator = Communicator::create(
          *domain, rank, {.waiting = Waiting::yield, .cores = ranks, .timeout = kDeadline, .prove_plans = proves});
      const Status status = communicator.is_ok() ? body(*communicator.value()) : communicator.status();
      const std::lock_guard lock(mutex);
      if (!status.is_ok() && (first.is_ok() || first.code() == Code::aborted)) first = status;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return first;
}

}  // namespace

std::string what_is_wrong(const Example& example, const Numbers& output, int rank) {
  std::vector<Bytes> inputs;
  for (const Numbers& input : example.input) inputs.push_back(bytes_of(input, example));
  RealRun run;
  compare(run, example, inputs, bytes_of(output, example), rank);
  return run.first_wrong;
}

Result<RealRun> run_example(const Example& example, const Schedule& schedule, bool proves) {
  const Problem& problem = example.problem;
  const auto number_bytes = static_cast<std::size_t>(example.scale) * size_of(example.dtype);
  std::vector<Bytes> inputs, outputs;
  RealRun run;
  for (int rank = 0; rank < problem.ranks; ++rank) {
    inputs.push_back(bytes_of(example.input[static_cast<std::size_t>(rank)], example));
    outputs.emplace_back(static_cast<std::size_t>(example.numbers_in(BufferSide::output, rank)) * number_bytes,
                         kUnwritten);
    run.before.push_back({numbers_of(inputs.back(), example), numbers_of(outputs.back(), example)});
  }
  const std::vector<Bytes> given = inputs;
  const Status ran = on_threads(problem.ranks, proves, [&](Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    Bytes factor;
    if (!example.factors.empty()) factor = bytes_of({example.factors[rank]}, example);
    const BlockTable blocks = blocks_of(example, communicator.rank());
    return communicator.run({.collective = problem.collective,
                             .dtype = example.dtype,
                             .op = example.op,
                             .root = problem.root,
                             .count = example.lengths.empty() ? example.count() : 0,
                             .input = inputs[rank].data(),
                             .output = outputs[rank].data(),
                             .factor = factor.data(),
                             .buffers = Buffers::shared,
                             .schedule = &schedule,
                             .blocks = example.lengths.empty() ? nullptr : &blocks});
  });
  TUTTI_RETURN_IF_ERROR(ran);
  for (int rank = 0; rank < problem.ranks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    run.after.push_back({numbers_of(inputs[at], example), numbers_of(outputs[at], example)});
    compare(run, example, given, outputs[at], rank);
    if (inputs[at] == given[at]) continue;
    ++run.wrong;
    if (run.first_wrong.empty()) run.first_wrong = fmt::format("the input of rank {} was written", rank);
  }
  return run;
}

Result<BarrierRun> run_barrier(const Schedule& schedule, std::chrono::nanoseconds nap) {
  const auto ranks = static_cast<std::size_t>(schedule.problem.ranks);
  BarrierRun run{.enters_ns = std::vector<std::int64_t>(ranks), .leaves_ns = std::vector<std::int64_t>(ranks)};
  Clock::time_point begin;
  const Status ran = on_threads(schedule.problem.ranks, true, [&](Communicator& communicator) -> Status {
    const Call call{.collective = Collective::barrier, .schedule = &schedule};
    TUTTI_RETURN_IF_ERROR(communicator.run(call));  // all threads are there, the plan is bound and proved
    const auto rank = static_cast<std::size_t>(communicator.rank());
    if (rank == 0) begin = Clock::now();
    TUTTI_RETURN_IF_ERROR(communicator.run(call));
    std::this_thread::sleep_until(begin + static_cast<int>(rank) * nap);
    const auto entered = Clock::now();
    const Status status = communicator.run(call);
    const auto left = Clock::now();
    run.enters_ns[rank] = std::chrono::nanoseconds(entered - begin).count();
    run.leaves_ns[rank] = std::chrono::nanoseconds(left - begin).count();
    return status;
  });
  TUTTI_RETURN_IF_ERROR(ran);
  return run;
}

}  // namespace tutti::harness::explain
