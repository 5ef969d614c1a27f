// SPDX-License-Identifier: Apache-2.0
// Where a variant's buffers start.
#include "harness/measure/variant.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/unit/harness/measure/board_memory.h"
#include "suites/unit/harness/measure/lazy_backend.h"

namespace tutti::harness::measure {
namespace {

using testing::ElementsAre;

constexpr int kVariantRanks = 2;
constexpr std::size_t kCacheLineBytes = 64;

/// Bytes after a cache line at which each buffer starts: input and output of rank 0, then of rank 1.
std::vector<std::size_t> starts_of(const Case& one, bool misaligns, std::uint64_t seed = 1,
                                   const Conditions& conditions = {}) {
  LazyBackend backend([](int) { return true; });
  const BoardMemory memory(kVariantRanks);
  Runner runner(memory.board(), {.runner = 0, .runners = 1, .job_ranks = kVariantRanks, .ranks = {0, 1}});
  auto variant = Variant::create(runner, {.backend = backend,
                                          .memory = [](const Case&, std::size_t) { return plain_memory(); },
                                          .instance = one,
                                          .seed = seed,
                                          .conditions = conditions,
                                          .misaligns = misaligns});
  EXPECT_TRUE(variant.is_ok()) << variant.status().message();
  variant.value().refill(1);
  RankTimes times;
  EXPECT_TRUE(variant.value().run(times).is_ok());
  EXPECT_EQ(variant.value().verify().text, "") << "results and guards";
  std::vector<std::size_t> starts;
  for (const RankBuffers& rank : backend.buffers()) {
    starts.push_back(reinterpret_cast<std::uintptr_t>(rank.input) % kCacheLineBytes);
    starts.push_back(reinterpret_cast<std::uintptr_t>(rank.output) % kCacheLineBytes);
  }
  return starts;
}

Case case_with(Count count) {
  Case one;
  one.collective = Collective::all_to_all;
  one.ranks = kVariantRanks;
  one.ranks_as = RanksAs::tasks;
  one.count = count;
  one.bytes = buffer_bytes(one.problem(), one.count, size_of(one.dtype));
  return one;
}

TEST(Variant, StartsEveryBufferAtACacheLineWhereItIsTimed) {
  for (const Count count : {1, 2, 3, 100}) EXPECT_THAT(starts_of(case_with(count), false), ElementsAre(0, 0, 0, 0));
}

TEST(Variant, StartsEveryBufferWhereThatIsAskedFor) {
  for (const Count count : {1, 2, 3, 100}) {
    EXPECT_THAT(starts_of(case_with(count), false, 1, {.misalign = 20}), ElementsAre(20, 20, 20, 20));
  }
}

TEST(Variant, StartsBuffersZeroOneOrThreeBytesOrElementsLaterWhereItIsChecked) {
  std::vector<std::set<std::size_t>> seen(4);
  for (Count count = 1; count <= 60; ++count) {
    const std::vector<std::size_t> starts = starts_of(case_with(count), true);
    ASSERT_EQ(starts.size(), seen.size());
    for (std::size_t i = 0; i < starts.size(); ++i) seen[i].insert(starts[i]);
  }
  for (const auto& each : seen) EXPECT_THAT(each, ElementsAre(0, 1, 3, 4, 12)) << "bytes; a float has four";
}

TEST(Variant, FindsTheSameStartsAgainByTheCasesIdAndTheSeed) {
  int different = 0;
  for (Count count = 1; count <= 20; ++count) {
    const auto starts = starts_of(case_with(count), true);
    EXPECT_EQ(starts, starts_of(case_with(count), true));
    different += starts != starts_of(case_with(count), true, 2) ? 1 : 0;
  }
  EXPECT_GT(different, 0);
}

TEST(Variant, ShowsItsOwnNumberOnTheBoardOrThatOfTheHost) {
  LazyBackend backend([](int) { return true; });
  const BoardMemory memory(kVariantRanks);
  Runner runner(memory.board(), {.runner = 0, .runners = 1, .job_ranks = kVariantRanks, .ranks = {0, 1}});
  runner.set_case(3);
  for (const auto number : {std::optional<std::uint32_t>(), std::optional<std::uint32_t>(7)}) {
    auto variant = Variant::create(runner, {.backend = backend,
                                            .memory = [](const Case&, std::size_t) { return plain_memory(); },
                                            .instance = case_with(1),
                                            .number = number});
    ASSERT_TRUE(variant.is_ok()) << variant.status().message();
    variant.value().announce();
    EXPECT_EQ(memory.board().status(1).case_index.load(), number.value_or(3));
    EXPECT_NE(memory.board().status(1).pending_since_ns.load(), 0);
  }
}

TEST(Variant, HasOneStartInPlace) {
  for (Count count = 1; count <= 20; ++count) {
    Case one = case_with(count);
    one.is_in_place = true;
    const auto starts = starts_of(one, true);
    EXPECT_EQ(starts[0], starts[1]);
    EXPECT_EQ(starts[1], misalignment_of(one, 1, 0, Side::output));
  }
}

}  // namespace
}  // namespace tutti::harness::measure
