// SPDX-License-Identifier: Apache-2.0
// Where operations have their scratch, as it lies in a domain after them, and that single copies have none.
#include <algorithm>
#include <array>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "impl/communicator/communicator.h"
#include "impl/communicator/selection.h"
#include "impl/execute/cpu_machine.h"
#include "impl/transports/local/domain.h"

namespace tutti {
namespace {

constexpr int kRanks = 2;
constexpr int kCalls = 64;

/// That of processes, in memory of this one.
DomainShape moving_shape() { return deepened(local::shape_for(kRanks)); }

/// All-reduces of so many bytes, checked. `schedule`: null for what `auto` chooses.
void run_calls(Domain& domain, std::size_t bytes, const Schedule* schedule = nullptr) {
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&domain, rank, bytes, schedule] {
      const auto communicator =
          std::move(Communicator::create(domain, rank, {.waiting = Waiting::yield, .cores = kRanks})).value();
      std::vector<float> input(bytes / sizeof(float)), output(input.size());
      for (int call = 0; call < kCalls; ++call) {
        std::ranges::fill(input, static_cast<float>(rank + 1 + call));
        ASSERT_TRUE(communicator
                        ->run({.collective = Collective::all_reduce,
                               .op = Op::sum,
                               .count = static_cast<Count>(input.size()),
                               .input = input.data(),
                               .output = output.data(),
                               .schedule = schedule})
                        .is_ok());
        ASSERT_EQ(std::ranges::count(output, static_cast<float>(3 + 2 * call)),
                  static_cast<std::ptrdiff_t>(output.size()));
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
}

/// The last byte of a generation's scratch that was written, from its beginning.
std::size_t reach_of(const Domain& domain, int generation) {
  const std::size_t area = scratch_stride(domain.shape());
  const std::byte* const begin = domain.seat(0).scratch + static_cast<std::size_t>(generation) * area;
  std::size_t end = area;
  while (end > 0 && begin[end - 1] == std::byte{0}) --end;
  return end;
}

TEST(MovingScratch, TakesTurnsInTheAreaOfItsGeneration) {
  const DomainShape shape = moving_shape();
  ASSERT_GT(shape.scratch_area, shape.scratch_bytes);
  for (const std::size_t bytes : {std::size_t{16} << 10U, std::size_t{100} << 10U}) {
    const auto domain = std::move(local::open_domain(shape)).value();
    run_calls(*domain, bytes);
    for (int generation = 0; generation < shape.generations; ++generation) {
      EXPECT_GT(reach_of(*domain, generation), shape.scratch_area / 2) << bytes << " bytes, generation " << generation;
    }
  }
}

TEST(MovingScratch, StaysWhereItIsIfItIsSmallOrHasNoArea) {
  const DomainShape moving = moving_shape();
  DomainShape still = moving;
  still.scratch_area = 0;
  for (const auto& [shape, bytes] :
       {std::pair{moving, CpuMachine::kLeastMovingScratch / 4}, std::pair{still, std::size_t{16} << 10U}}) {
    const auto domain = std::move(local::open_domain(shape)).value();
    run_calls(*domain, bytes);
    for (int generation = 0; generation < shape.generations; ++generation) {
      EXPECT_LE(reach_of(*domain, generation), 4 * bytes) << bytes << " bytes, generation " << generation;
    }
  }
}

TEST(SingleCopy, OfThreadsNeedsNoScratch) {
  const Problem problem{.collective = Collective::all_reduce, .ranks = kRanks};
  for (const char* const name : {"two_shot+single_copy", "two_shot+4K+single_copy", "two_shot"}) {
    const auto tuned = find_tuned(Collective::all_reduce, name).value();
    const Schedule schedule = schedule_of(tuned, problem);
    const auto domain = std::move(local::open_domain(moving_shape())).value();
    run_calls(*domain, std::size_t{64} << 10U, &schedule);
    const bool is_staged = tuned.tuning.stores != Stores::single_copy;
    EXPECT_EQ(reach_of(*domain, 0) > 0, is_staged) << name;
  }
}

}  // namespace
}  // namespace tutti
