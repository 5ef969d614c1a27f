// SPDX-License-Identifier: Apache-2.0
// The harness catches what it is there to catch. Collectives broken on purpose take the place of a real one and run
// beside it, on ranks as threads. They go through the checks of `tutti check` and through the samples of `tutti run`.
// The broken one is `wrong`, with its cause in the reason, and the real one is `ok`. With proofs on, the broken
// schedule does not even run.
#include <functional>
#include <optional>
#include <ostream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/backends/tutti/backend.h"
#include "harness/measure/cell.h"
#include "harness/measure/check.h"
#include "impl/transports/local/domain.h"
#include "suites/unit/harness/measure/board_memory.h"
#include "suites/unit/impl/prove/programs.h"

namespace tutti::harness {
namespace {

using testing::HasSubstr;

constexpr int kRanks = 4;

/// A real algorithm, how to break it, and what the reason then says.
struct Fault {
  std::string name;
  Collective collective;
  std::string algorithm;
  Op op;
  void (*apply)(Programs&);
  std::string reason;
};

void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

void do_nothing(Programs& programs) {
  for (Program& program : programs.ranks) program.clear();
}
void forget_the_last_rank(Programs& programs) {
  for (Program& program : programs.ranks)
    program.back().sources = {on({.first = 0, .n = kRanks - 1}, scratch(0, unit(0)))};
}
void count_a_rank_twice(Programs& programs) {
  for (Program& program : programs.ranks) program.back().sources.push_back(scratch(2, unit(0)));
}
void swap_two_blocks(Programs& programs) {
  Program& program = programs[1];
  std::swap(at(program, 3).destinations, at(program, 5).destinations);
}
void forget_the_last_ranks_block(Programs& programs) {
  for (int rank = 0; rank < kRanks; ++rank)
    at(programs[rank], 2).sources = {on({.first = 0, .n = kRanks - 1}, input(0, unit(rank)))};
}
void swap_two_gathered_blocks(Programs& programs) {
  std::swap(at(programs[0], 2).destinations, at(programs[0], 5).destinations);
}
void write_to_the_input(Programs& programs) { programs[3].push_back(move({input(3, unit(0))}, {output(3, unit(0))})); }
void forget_the_division(Programs& programs) {
  for (Program& program : programs.ranks) program.back().is_final = false;
}

const Fault kFaults[] = {
    {"barrier_that_does_nothing", Collective::barrier, "dissemination", Op::none, do_nothing,
     "a rank left the barrier"},
    {"broadcast_that_does_nothing", Collective::broadcast, "direct", Op::none, do_nothing,
     "output still holds the poison: nothing was written"},
    {"all_reduce_that_forgets_a_rank", Collective::all_reduce, "one_shot", Op::sum, forget_the_last_rank,
     "rank 3's contribution is missing"},
    {"all_reduce_that_counts_a_rank_twice", Collective::all_reduce, "one_shot", Op::sum, count_a_rank_twice,
     "rank 2's contribution is counted twice"},
    {"all_reduce_that_writes_to_the_input", Collective::all_reduce, "one_shot", Op::sum, write_to_the_input,
     "rank 3: the input was overwritten"},
    {"avg_without_its_division", Collective::all_reduce, "one_shot", Op::avg, forget_the_division,
     "holds the sum: avg was not divided by 4"},
    {"all_to_all_with_two_blocks_swapped", Collective::all_to_all, "direct", Op::none, swap_two_blocks,
     "rank 1: output: "},
    {"reduce_scatter_that_forgets_a_rank", Collective::reduce_scatter, "direct", Op::sum, forget_the_last_ranks_block,
     "rank 3's contribution is missing"},
    {"gather_with_two_blocks_swapped", Collective::gather, "direct", Op::none, swap_two_gathered_blocks,
     "blocks 1 and 2 are swapped"},
};

Case case_of(const Fault& fault, std::string algorithm) {
  Case one;
  one.collective = fault.collective;
  one.transport = "local";
  one.op = fault.op;
  one.ranks = kRanks;
  one.ranks_as = RanksAs::threads;
  one.count = has_data(fault.collective) ? 300 : 0;
  one.bytes = buffer_bytes(one.problem(), one.count, size_of(one.dtype));
  one.algorithm = std::move(algorithm);
  return one;
}

Schedule broken_schedule(const Fault& fault) {
  Programs programs = programs_of(fault.collective, fault.algorithm, kRanks);
  fault.apply(programs);
  Schedule schedule = programs.schedule();
  schedule.name = fault.name;
  return schedule;
}

using Rows = std::vector<Row>;
using RunnerWork = std::function<Result<Rows>(Runner&, OwnBackend&)>;

/// Runs `work` on one host per rank, each a thread with a backend that knows the broken schedule by its name; runner
/// 0's rows.
Rows on_runners(const Fault& fault, const RunnerWork& work) {
  const BoardMemory memory(kRanks);
  const Board board = memory.board();
  const auto domain = local::open_domain(local::shape_for(kRanks));
  EXPECT_TRUE(domain.is_ok());
  Rows rows;
  const auto run = [&](int rank) -> Status {
    Runner runner(board, runner_options(rank, kRanks));
    TUTTI_ASSIGN_OR_RETURN(
        auto backend, OwnBackend::create(*domain.value(), {rank}, {.waiting = Waiting::yield, .prove_plans = false}));
    backend->set_substitute([&](const Case& one, const Problem& /*problem*/) {
      return one.algorithm == fault.name ? std::optional(broken_schedule(fault)) : std::nullopt;
    });
    TUTTI_ASSIGN_OR_RETURN(Rows mine, work(runner, *backend));
    if (rank == 0) rows = std::move(mine);
    return {};
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      const Status status = run(rank);
      EXPECT_TRUE(status.is_ok()) << "rank " << rank << ": " << status.message();
      if (!status.is_ok()) board.abort_flag().store(1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return rows;
}

Variant::Request request_for(OwnBackend& backend, const Case& one) {
  return {.backend = backend,
          .memory = [&backend](const Case& which, std::size_t index) { return backend.allocator(which, index); },
          .instance = one};
}

class Broken : public testing::TestWithParam<Fault> {
 protected:
  /// Rows of the broken collective and of the real one.
  void expect_wrong_and_ok(const Rows& rows, const std::string& reason) {
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_EQ(rows[0].verdict, Verdict::wrong);
    EXPECT_GT(rows[0].wrong.value_or(0), 0);
    EXPECT_THAT(rows[0].reason, HasSubstr(reason));
    EXPECT_EQ(rows[1].verdict, Verdict::ok) << rows[1].reason;
    EXPECT_EQ(rows[1].wrong, 0);
  }
  const Case broken_ = case_of(GetParam(), GetParam().name);
  const Case real_ = case_of(GetParam(), GetParam().algorithm);
};

TEST_P(Broken, IsWrongInACheckAndTheRealOneIsOk) {
  const Rows rows = on_runners(GetParam(), [&](Runner& runner, OwnBackend& backend) -> Result<Rows> {
    Rows mine;
    for (const Case& one : {broken_, real_}) {
      TUTTI_ASSIGN_OR_RETURN(Variant variant, Variant::create(runner, request_for(backend, one)));
      TUTTI_ASSIGN_OR_RETURN(Row row, check_case(runner, variant));
      mine.push_back(std::move(row));
    }
    return mine;
  });
  expect_wrong_and_ok(rows, GetParam().reason);
}

TEST_P(Broken, IsWrongWhereItIsTimedAndTheRealOneBesideItIsOk) {
  const Rows rows = on_runners(GetParam(), [&](Runner& runner, OwnBackend& backend) -> Result<Rows> {
    std::vector<Variant> variants;
    for (const Case& one : {broken_, real_}) {
      TUTTI_ASSIGN_OR_RETURN(Variant variant, Variant::create(runner, request_for(backend, one)));
      variants.push_back(std::move(variant));
    }
    return measure_cell(runner, variants, {.most_time = std::chrono::milliseconds(50)});
  });
  expect_wrong_and_ok(rows, GetParam().reason);
}

TEST_P(Broken, IsRefusedByTheProofBeforeItRuns) {
  const Fault& fault = GetParam();
  const auto domain = local::open_domain(local::shape_for(kRanks));
  ASSERT_TRUE(domain.is_ok());
  const auto communicator = Communicator::create(*domain.value(), 0, {.prove_plans = true});
  ASSERT_TRUE(communicator.is_ok());
  const Schedule schedule = broken_schedule(fault);
  std::vector<float> in(kRanks * 300), out(in.size());
  Call call{.collective = fault.collective,
            .op = fault.op,
            .count = broken_.count,
            .input = in.data(),
            .output = out.data(),
            .schedule = &schedule};
  // Made ready ahead of time it is refused, and other calls are not.
  EXPECT_EQ(communicator.value()->prepare(call).code(), Code::refuted);
  call.schedule = nullptr;
  EXPECT_TRUE(communicator.value()->prepare(call).is_ok());
  call.schedule = &schedule;
  const auto work = communicator.value()->post(call);
  ASSERT_FALSE(work.is_ok());
  EXPECT_EQ(work.status().code(), Code::refuted);
  EXPECT_THAT(work.status().message(), HasSubstr(fault.name + " on 4 ranks"));
}

INSTANTIATE_TEST_SUITE_P(Faults, Broken, testing::ValuesIn(kFaults),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace tutti::harness
