// SPDX-License-Identifier: Apache-2.0
// Calls go through sets of buffers that put each other out of the cache.
#include "harness/measure/rotation.h"

#include <set>
#include <sys/mman.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/measure/block.h"
#include "harness/measure/memory.h"
#include "suites/unit/harness/measure/board_memory.h"
#include "suites/unit/harness/measure/lazy_backend.h"

namespace tutti::harness::measure {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kMi = std::int64_t{1} << 20;
constexpr LastLevelCache kCache{.bytes = 32 * kMi, .cores = 8};

Case rotated_case(std::int64_t bytes, int ranks, RanksAs ranks_as) {
  Case one;
  one.collective = Collective::all_to_all;
  one.ranks = ranks;
  one.ranks_as = ranks_as;
  set_bytes(one, bytes);
  return one;
}

TEST(Rotation, OfLongBuffersHasTwiceTheCacheAndOfShortOnesIsFilledUp) {
  const auto of = [](std::int64_t bytes, int ranks, RanksAs as) {
    return rotation_of(rotated_case(bytes, ranks, as), kCache);
  };
  EXPECT_EQ(of(kMi, 4, RanksAs::processes), (Rotation{.sets = 8, .filler_bytes = 0})) << "16 MiB each, in 2 x 1 MiB";
  EXPECT_EQ(of(64 * kMi, 4, RanksAs::processes), (Rotation{.sets = 2, .filler_bytes = 0}));
  EXPECT_EQ(of(16 * 1024, 4, RanksAs::processes), (Rotation{.sets = 16, .filler_bytes = 16 * kMi - 16 * 32 * 1024}));
  EXPECT_EQ(of(kMi, 4, RanksAs::tasks), (Rotation{.sets = 8, .filler_bytes = 0})) << "64 MiB in 4 x 2 x 1 MiB";
  EXPECT_EQ(of(kMi, 32, RanksAs::threads).sets, 4) << "eight share a cache, each has 8 MiB";
  EXPECT_EQ(rotation_of(rotated_case(kMi, 4, RanksAs::tasks), CacheState::cold), Rotation());
}

TEST(Rotation, WhatDoesNotFitIsRefusedWithBothNumbers) {
  const std::vector<Case> cell{rotated_case(std::int64_t{1} << 50, 2, RanksAs::processes)};
  const MemoryLeft left{.bytes = std::int64_t{1} << 33, .of = std::int64_t{1} << 34};
  const Status refusal = fits_memory(memory_need(cell, CacheState::rotate), {.left = left});
  EXPECT_THAT(refusal.message(), HasSubstr("the buffers of this cell take 8388608.0 GiB, with "));
  EXPECT_THAT(refusal.message(), HasSubstr("; 8.0 GiB are left of the 16.0 GiB of the machine"));
  Case shared = rotated_case(64 * kMi, 2, RanksAs::processes);
  shared.buffers = Buffers::shared;
  const auto sets = static_cast<std::size_t>(rotation_of(shared, CacheState::rotate).sets);
  const auto heap_of = [&](CacheState state) {
    return heap_bytes_for({{shared}}, state, {.bytes = std::int64_t{1} << 50});
  };
  EXPECT_EQ(heap_of(CacheState::rotate), sets * heap_of(CacheState::hot));
}

constexpr int kRotatedCalls = 10;

class RotatingBlock : public testing::TestWithParam<bool> {
 protected:
  Result<Variant> rotating(LazyBackend& backend, const Rotation& rotation, std::span<const std::byte> filler = {}) {
    Case one = rotated_case(800, kBoth, RanksAs::tasks);
    one.backend = backend.name();
    one.is_in_place = GetParam();
    return Variant::create(runner_, {.backend = backend,
                                     .memory = [](const Case&, std::size_t) { return plain_memory(); },
                                     .instance = one,
                                     .rotation = rotation,
                                     .filler = filler});
  }

  static constexpr int kBoth = 2;
  BoardMemory memory_{kBoth};
  Runner runner_{memory_.board(), {.runner = 0, .runners = 1, .job_ranks = kBoth, .ranks = {0, 1}}};
};

TEST_P(RotatingBlock, UsesTheSetsInTurnAndIsVerified) {
  constexpr int kSets = 4;
  const std::vector<std::byte> filler(1000, std::byte{1});
  LazyBackend backend([](int) { return true; });
  auto variant = rotating(backend, {.sets = kSets, .filler_bytes = 1000}, filler);
  ASSERT_TRUE(variant.is_ok()) << variant.status().message();
  EXPECT_EQ(variant.value().sets(), kSets);
  const auto result = run_block(runner_, variant.value(), {.salt = 7, .samples = kRotatedCalls});
  ASSERT_TRUE(result.is_ok()) << result.status().message();
  EXPECT_EQ(result.value().wrong, 0) << result.value().reason;
  const std::vector<const void*>& outputs = backend.outputs();
  ASSERT_EQ(outputs.size(), 2U + kRotatedCalls + 1);
  EXPECT_EQ(std::set<const void*>(outputs.begin(), outputs.end()).size(), static_cast<std::size_t>(kSets));
  for (std::size_t i = kSets; i < outputs.size(); ++i) EXPECT_EQ(outputs[i], outputs[i - kSets]) << i;
}

/// Whether the kernel has given memory to each page of `bytes`.
std::vector<bool> are_there(std::span<const std::byte> bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages(bytes.size() / page);
  EXPECT_EQ(mincore(const_cast<std::byte*>(bytes.data()), bytes.size(), pages.data()), 0);
  std::vector<bool> there;
  for (const unsigned char one : pages) there.push_back((one & 1U) != 0);
  return there;
}

TEST_P(RotatingBlock, ReadsAllOfTheFillerWhileItGoesThroughTheSetsOnce) {
  constexpr std::size_t kPages = 10;
  constexpr int kSets = 4;
  const std::size_t bytes = kPages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  madvise(memory, bytes, MADV_NOHUGEPAGE);
  const std::span<const std::byte> filler(static_cast<const std::byte*>(memory), bytes);
  LazyBackend backend([](int) { return true; });
  auto variant = rotating(backend, {.sets = kSets, .filler_bytes = static_cast<std::int64_t>(bytes)}, filler);
  ASSERT_TRUE(variant.is_ok()) << variant.status().message();
  EXPECT_EQ(are_there(filler), std::vector<bool>(kPages, false)) << "nobody has touched it";
  variant.value().next_set();
  EXPECT_EQ(std::ranges::count(are_there(filler), true), 3) << "2.5 pages";
  for (int set = 1; set < kSets; ++set) variant.value().next_set();
  EXPECT_EQ(are_there(filler), std::vector<bool>(kPages, true));
  munmap(memory, bytes);
}

TEST_P(RotatingBlock, CatchesASystemThatWorksBeforeTheLastCallOnly) {
  LazyBackend backend([](int number) { return number < 2 + kRotatedCalls; });
  auto variant = rotating(backend, {.sets = 4});
  ASSERT_TRUE(variant.is_ok()) << variant.status().message();
  EXPECT_GT(run_block(runner_, variant.value(), {.salt = 7, .samples = kRotatedCalls}).value().wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(Placements, RotatingBlock, testing::Bool(),
                         [](const auto& instance) { return instance.param ? "in_place" : "out_of_place"; });

}  // namespace
}  // namespace tutti::harness::measure
