// SPDX-License-Identifier: Apache-2.0
// The limit of buffers on a device, with a device that the runner cannot touch and that does as it is told.
#include "harness/measure/device_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/machine/clock.h"
#include "harness/verify/device_work.h"
#include "suites/unit/harness/measure/board_memory.h"
#include "suites/unit/harness/verify/device_memory.h"

namespace tutti::harness::measure {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// Its copies and triads are done at once.
class WorkingMemory final : public DeviceMemory {
 public:
  bool has_kernels = true;
  bool is_lazy = false;  ///< does nothing
  std::int64_t copies = 0, triads = 0;

  Status start_copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    ++copies;
    if (!is_lazy) std::memcpy(at(to), at(from), bytes);
    return {};
  }
  Status start_triad(const TriadWork& work) override {
    if (!has_kernels) return Memory::start_triad(work);
    triads += work.bytes > 0 ? 1 : 0;
    for (std::int64_t i = 0; i < work.bytes && !is_lazy; i += 4) {
      std::uint32_t first = 0, second = 0;
      std::memcpy(&first, at(work.first + i), sizeof(first));
      std::memcpy(&second, at(work.second + i), sizeof(second));
      first += kTriadFactor * second;
      std::memcpy(at(work.to + i), &first, sizeof(first));
    }
    return {};
  }
  Result<bool> is_idle() override { return true; }
};

Case case_of(Collective collective, std::int64_t bytes, bool is_in_place = false) {
  Case one;
  one.collective = collective;
  one.op = is_reducing(collective) ? Op::sum : Op::none;
  one.ranks = 2;
  one.ranks_as = RanksAs::tasks;
  one.is_in_place = is_in_place;
  if (has_counts(collective)) one.counts = {.pattern = Pattern::ramp, .name = "ramp"};
  set_bytes(one, bytes);
  return one;
}

TEST(Traffic, OfARankIsWhatItReadsAndWrites) {
  EXPECT_EQ(traffic_of(case_of(Collective::all_reduce, 4000), 0), 8000);
  EXPECT_EQ(traffic_of(case_of(Collective::all_reduce, 4000, true), 1), 8000);
  EXPECT_EQ(traffic_of(case_of(Collective::all_gather, 4000), 0), 6000);
  EXPECT_EQ(traffic_of(case_of(Collective::all_gather, 4000, true), 0), 4000) << "its own block is there";
  EXPECT_EQ(traffic_of(case_of(Collective::broadcast, 4000), 0), 8000) << "the root's output too";
  EXPECT_EQ(traffic_of(case_of(Collective::broadcast, 4000), 1), 4000);
  EXPECT_EQ(traffic_of(case_of(Collective::broadcast, 4000, true), 0), 4000);
}

/// What both ranks of one runner find after a call of the limit, each way.
std::vector<std::string> found_after_calls(WorkingMemory& memory, const Case& one) {
  const BoardMemory board(2);
  Runner runner(board.board(), {.runner = 0, .runners = 1, .job_ranks = 2, .ranks = {0, 1}});
  DeviceLimit limit({0, 1}, {&memory, &memory});
  auto made = make_device_limit(runner, limit, {.backend = limit, .memory = limit.memory(), .instance = one},
                                monotonic_ns() + 20'000'000);
  EXPECT_TRUE(made.is_ok()) << made.status().message();
  EXPECT_TRUE(made.value().has_value());
  std::vector<std::string> found;
  for (const bool is_triad : {false, true}) {
    if (is_triad && !memory.has_kernels) continue;
    limit.set_triad(is_triad);
    RankTimes times;
    EXPECT_TRUE(made.value()->run(times).is_ok());
    found.push_back(made.value()->verify().text);
  }
  return found;
}

TEST(DeviceLimit, IsVerifiedEachWayOfEveryCollectiveThatHasOne) {
  for (const Collective collective : every_collective()) {
    for (const std::int64_t bytes : {8, 4000, 1 << 20}) {
      const Case one = case_of(collective, bytes);
      if (!limit_of(one)) continue;
      WorkingMemory memory;
      EXPECT_THAT(found_after_calls(memory, one), testing::ElementsAre("", "")) << case_id(one);
      EXPECT_GT(memory.copies, 0);
      EXPECT_GT(memory.triads, 0);
      EXPECT_EQ(memory.blocks(), 0U) << "buffers that were left";
    }
  }
}

TEST(DeviceLimit, ACallThatDoesNothingIsFoundOut) {
  WorkingMemory memory;
  const BoardMemory board(2);
  Runner runner(board.board(), {.runner = 0, .runners = 1, .job_ranks = 2, .ranks = {0, 1}});
  DeviceLimit limit({0, 1}, {&memory, &memory});
  const Case one = case_of(Collective::all_reduce, 1 << 20);
  auto made = make_device_limit(runner, limit, {.backend = limit, .memory = limit.memory(), .instance = one},
                                monotonic_ns() + 20'000'000);
  ASSERT_TRUE(made.is_ok() && made.value());
  for (const bool is_triad : {false, true}) {
    limit.set_triad(is_triad);
    for (const bool is_lazy : {false, true}) {  // what the call before has left does not pass
      memory.is_lazy = is_lazy;
      RankTimes times;
      ASSERT_TRUE(made.value()->run(times).is_ok());
      const std::string text = made.value()->verify().text;
      EXPECT_EQ(text.empty(), !is_lazy);
      if (!is_lazy) continue;
      EXPECT_THAT(text,
                  StartsWith(is_triad ? "rank 0: the triad of 699056 bytes" : "rank 0: the copy of 1048576 bytes"));
    }
  }
}

TEST(DeviceLimit, IsACopyWhereThereAreNoKernels) {
  WorkingMemory memory;
  memory.has_kernels = false;
  EXPECT_THAT(found_after_calls(memory, case_of(Collective::all_reduce, 4000)), testing::ElementsAre(""));
  EXPECT_GT(memory.copies, 0);
  EXPECT_EQ(memory.triads, 0);
}

}  // namespace
}  // namespace tutti::harness::measure
